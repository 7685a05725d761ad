import { ManualClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { SharedTimer } from "./shared-timer.ts";

describe("a shared timer", () => {
  it("runs each task at its own time, in order, whatever the order they were set in", () => {
    const clock = new ManualClock(100);
    const shared = new SharedTimer(clock);
    const ran: string[] = [];
    const note = (name: string) => () => ran.push(`${name} at ${clock.nowMs()}`);
    shared.after(30, note("c"));
    shared.after(10, note("a"));
    shared.after(10, note("b"));
    shared.after(-5, note("at once"));
    clock.advance(9);
    expect(ran).toEqual(["at once at 100"]);
    clock.advance(21);
    expect(ran).toEqual(["at once at 100", "a at 110", "b at 110", "c at 130"]);
  });

  it("runs none that was stopped, not even by one that was due with it", () => {
    const clock = new ManualClock();
    const shared = new SharedTimer(clock);
    const ran: string[] = [];
    const stop = shared.after(10, () => ran.push("stopped"));
    shared.after(20, () => {
      ran.push("first");
      stopSecond();
    });
    const stopSecond = shared.after(20, () => ran.push("second"));
    stop();
    stop();
    clock.advance(100);
    expect(ran).toEqual(["first"]);
  });

  it("goes on with tasks that tasks set", () => {
    const clock = new ManualClock();
    const shared = new SharedTimer(clock);
    const atMs: number[] = [];
    const again = (): void => {
      atMs.push(clock.nowMs());
      if (atMs.length < 4) shared.after(7, again);
    };
    shared.after(7, again);
    clock.advance(1000);
    expect(atMs).toEqual([7, 14, 21, 28]);
  });

  it("sets a timer of the clock behind it only where that would come too late", () => {
    const clock = new ManualClock();
    let set = 0;
    const shared = new SharedTimer({
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      after: (ms, task) => {
        set += 1;
        return clock.after(ms, task);
      },
    });
    for (let i = 0; i < 1000; i++) {
      shared.after(30_000, () => {})();
      clock.advance(1);
    }
    expect(set).toBe(1);
  });
});

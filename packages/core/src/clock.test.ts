import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ManualClock, systemClock } from "./clock.ts";

describe("the system clock", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("runs a task after a delay that is longer than the system's timers reach, and not before", () => {
    const task = vi.fn();
    const days50Ms = 50 * 86_400_000;
    systemClock.after(days50Ms, task);
    vi.advanceTimersByTime(days50Ms - 1);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(task).toHaveBeenCalledTimes(1);
  });

  it("calls off a long delay in any of its parts", () => {
    const task = vi.fn();
    const cancel = systemClock.after(50 * 86_400_000, task);
    vi.advanceTimersByTime(30 * 86_400_000);
    cancel();
    vi.advanceTimersByTime(60 * 86_400_000);
    expect(task).not.toHaveBeenCalled();
  });
});

describe("the manual clock", () => {
  it("moves only when told to, wall and monotonic time together", () => {
    const clock = new ManualClock(5, 1_000_000);
    expect([clock.nowMs(), clock.wallMs()]).toEqual([5, 1_000_000]);
    clock.advance(3_600_000);
    expect([clock.nowMs(), clock.wallMs()]).toEqual([3_600_005, 4_600_000]);
  });

  it("runs timers in the order of their time, equal ones as they were set, each at its own instant", () => {
    const clock = new ManualClock();
    const seen: string[] = [];
    for (const [name, delayMs] of [
      ["late", 30],
      ["first", 10],
      ["second", 10],
    ] as const) {
      clock.after(delayMs, () => seen.push(`${name} ${clock.nowMs()}`));
    }
    clock.advance(20);
    expect(seen).toEqual(["first 10", "second 10"]);
    clock.advance(20);
    expect(seen).toEqual(["first 10", "second 10", "late 30"]);
  });

  it("runs a timer that a timer sets within the same move", () => {
    const clock = new ManualClock();
    const seen: number[] = [];
    clock.after(10, () => clock.after(5, () => seen.push(clock.nowMs())));
    clock.advance(15);
    expect(seen).toEqual([15]);
  });

  it("does not run a timer that was called off, nor any twice", () => {
    const clock = new ManualClock();
    let runs = 0;
    const cancel = clock.after(10, () => runs++);
    clock.after(10, () => runs++);
    cancel();
    clock.advance(100);
    clock.advance(100);
    expect(runs).toBe(1);
  });
});

import { ManualClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { TickLoop } from "./tick-loop.ts";

/** A loop whose ticks end when the test says so. */
function loopOf(tickMs: number) {
  const clock = new ManualClock();
  const starts: number[] = [];
  const ends: (() => void)[] = [];
  const loop = new TickLoop(clock, tickMs, () => {
    starts.push(clock.nowMs());
    return new Promise<void>((resolve) => ends.push(resolve));
  });
  const end = async () => {
    ends.shift()!();
    await new Promise(setImmediate);
  };
  return { clock, loop, starts, end };
}

describe("the loop of ticks", () => {
  it("starts a tick each interval, counted from the start of the one before", async () => {
    const { clock, loop, starts, end } = loopOf(5000);
    loop.start();
    clock.advance(1200);
    await end();
    clock.advance(3800);
    await end();
    clock.advance(5000);
    expect(starts).toEqual([0, 5000, 10_000]);
  });

  it("never runs two at once: a tick longer than the interval delays the next", async () => {
    const { clock, loop, starts, end } = loopOf(1000);
    loop.start();
    clock.advance(3500);
    expect(starts).toEqual([0]);
    await end();
    clock.advance(0);
    expect(starts).toEqual([0, 3500]);
  });

  it("starts one at once when hurried, and one only however often", async () => {
    const { clock, loop, starts, end } = loopOf(5000);
    loop.start();
    await end();
    clock.advance(1000);
    for (let i = 0; i < 10; i++) loop.hurry();
    clock.advance(0);
    await end();
    clock.advance(4999);
    expect(starts).toEqual([0, 1000]);
    clock.advance(1);
    expect(starts).toEqual([0, 1000, 6000]);
  });

  it("starts one soon after the tick under way when hurried in it, with a gap between", async () => {
    const { clock, loop, starts, end } = loopOf(5000);
    loop.start();
    clock.advance(50);
    loop.hurry();
    await end();
    clock.advance(149);
    expect(starts).toEqual([0]);
    clock.advance(1);
    expect(starts).toEqual([0, 200]);
  });

  it("waits for the tick under way when stopped, and starts no more", async () => {
    const { clock, loop, starts, end } = loopOf(1000);
    loop.start();
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await new Promise(setImmediate);
    expect(stopped).toBe(false);
    await end();
    await stopping;
    loop.hurry();
    clock.advance(10_000);
    expect(starts).toEqual([0]);
  });
});

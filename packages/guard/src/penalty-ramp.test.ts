import { describe, expect, it } from "vitest";
import { PENALTY_FLOOR, PenaltyRamp } from "./penalty-ramp.ts";

/** Ticks of 250 ms with a good answer every `everyMs`; the factors that it went through, with their times. */
function climb(ramp: PenaltyRamp, fromMs: number, everyMs: number, untilMs: number): [number, number][] {
  const seen: [number, number][] = [];
  for (let nowMs = fromMs; nowMs <= untilMs && ramp.active; nowMs += 250) {
    if ((nowMs - fromMs) % everyMs === 0) {
      ramp.began(nowMs);
      ramp.good(nowMs);
    }
    const before = ramp.factor;
    ramp.tick(nowMs);
    if (ramp.factor !== before) seen.push([nowMs - fromMs, ramp.factor]);
  }
  return seen;
}

describe("a penalty's ramp", () => {
  it("goes straight to the floor, and back by steps of time and good answers", () => {
    const ramp = new PenaltyRamp();
    expect([ramp.active, ramp.factor]).toEqual([false, 1]);
    ramp.alarm(0);
    expect([ramp.active, ramp.factor]).toEqual([true, PENALTY_FLOOR]);
    expect(climb(ramp, 0, 500, 60_000)).toEqual([
      [5000, 0.12],
      [11_000, 0.25],
      [17_000, 0.5],
      [23_000, 1],
    ]);
  });

  it("stays where nothing good comes, and counts nothing that began before the alarm", () => {
    const ramp = new PenaltyRamp();
    ramp.alarm(10_000);
    ramp.good(9999);
    ramp.began(20_000);
    ramp.tick(30_000);
    expect(ramp.factor).toBe(PENALTY_FLOOR);
    ramp.good(10_000);
    ramp.tick(30_000);
    expect(ramp.factor).toBe(0.12);
  });

  it("goes back to the floor at a new alarm, each time for longer, 20 s at the most", () => {
    const ramp = new PenaltyRamp();
    const floors: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 4; i++) {
      ramp.alarm(nowMs);
      for (const fromMs = nowMs; ramp.atFloor; nowMs += 250) {
        ramp.began(nowMs);
        ramp.good(nowMs);
        ramp.tick(nowMs);
        if (!ramp.atFloor) floors.push(nowMs - fromMs);
      }
    }
    expect(floors).toEqual([5000, 10_000, 20_000, 20_000]);
  });

  it("asks for a request when none came for 15 s at the floor, for 4 s on the way back, and not when it is full", () => {
    const ramp = new PenaltyRamp();
    expect(ramp.wantsRequest(1e9)).toBe(false);
    ramp.alarm(0);
    expect([ramp.wantsRequest(14_999), ramp.wantsRequest(15_000)]).toEqual([false, true]);
    ramp.began(15_000);
    expect(ramp.wantsRequest(15_000)).toBe(false);
    ramp.good(15_000);
    ramp.tick(15_250);
    expect([ramp.wantsRequest(18_999), ramp.wantsRequest(19_000)]).toEqual([false, true]);
  });

  it("comes back by time alone where no request comes", () => {
    const ramp = new PenaltyRamp();
    ramp.alarm(0);
    ramp.tick(29_999);
    expect(ramp.factor).toBe(PENALTY_FLOOR);
    for (let nowMs = 30_000; nowMs <= 120_000; nowMs += 30_000) ramp.tick(nowMs);
    expect(ramp.active).toBe(false);
  });
});

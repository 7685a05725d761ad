import { type Random, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { Level } from "./level.ts";

/** Knuth's method: exact, and slow enough for a test alone. */
function poisson(mean: number, random: Random): number {
  let count = -1;
  for (let left = mean; left > 0; count++) left += Math.log(1 - random());
  return Math.max(0, count);
}

describe("a level of demand", () => {
  it("is the rate at once when arrivals are even", () => {
    const level = new Level();
    level.add(50, 1000);
    expect(level.perSecond).toBe(50);
    for (let i = 0; i < 100; i++) level.add(50, 1000);
    expect(level.perSecond).toBeCloseTo(50, 9);
  });

  it("begins with the first whole window of traffic, whatever the empty and the half one before it held", () => {
    const level = new Level();
    for (let i = 0; i < 5; i++) level.add(0, 1000);
    expect(level.perSecond).toBe(0);
    level.add(7, 1000);
    expect(level.perSecond).toBe(7);
    level.add(30, 1000);
    expect(level.perSecond).toBe(30);
    level.add(40, 1000);
    expect(level.perSecond).toBeCloseTo(35, 9);
  });

  it("counts per second, whatever the window", () => {
    const level = new Level();
    level.add(50, 250);
    expect(level.perSecond).toBe(200);
  });

  it.each([2, 10, 100])(
    "stands within 3 %% of a steady %i requests/s in the long mean, and within a quarter most times",
    (rate) => {
      const random = seededRandom(5);
      const level = new Level();
      let sum = 0;
      let far = 0;
      const windows = 20_000;
      for (let i = 0; i < windows; i++) {
        level.add(poisson(rate, random), 1000);
        sum += level.perSecond;
        if (rate >= 10 && Math.abs(level.perSecond / rate - 1) > 0.25) far++;
      }
      expect(Math.abs(sum / windows / rate - 1)).toBeLessThan(0.03);
      expect(far / windows).toBeLessThan(0.05);
    },
  );

  it("takes half of a doubling within 4 s and all but a tenth within 16 s, and falls by 63 %% in 10 to 12 s", () => {
    const level = new Level();
    for (let i = 0; i < 120; i++) level.add(100, 1000);
    for (let i = 0; i < 4; i++) level.add(200, 1000);
    expect(level.perSecond).toBeGreaterThan(150);
    for (let i = 0; i < 12; i++) level.add(200, 1000);
    expect(level.perSecond).toBeGreaterThan(190);
    for (let i = 0; i < 300; i++) level.add(200, 1000);
    for (let i = 0; i < 12; i++) level.add(0, 1000);
    expect(level.perSecond).toBeLessThan(200 * Math.exp(-1));
    expect(level.perSecond).toBeGreaterThan(200 * Math.exp(-1.25));
  });

  it("falls slowly where a fall may be chance: by 63 %% of it in 30 s", () => {
    const level = new Level();
    for (let i = 0; i < 120; i++) level.add(100, 1000);
    for (let i = 0; i < 30; i++) level.add(95, 1000);
    expect(level.perSecond).toBeCloseTo(95 + 5 * Math.exp(-1), 1);
  });
});

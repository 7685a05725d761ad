import { describe, expect, it } from "vitest";
import { looksHealthy, SLOW_LIMIT, SLOW_LOG_RATIO, SlowTest } from "./slow-test.ts";

/** Observations of one kind until the alarm. */
function until(x: number, spread: number): number {
  const test = new SlowTest();
  let count = 0;
  for (; !test.alarmed && count < 1000; count++) test.observe(x, spread);
  return count;
}

describe("the slow test", () => {
  it("has a likelihood ratio of mean 1 for healthy engines, so that Lorden's bound holds", () => {
    for (const spread of [0.3, 0.5, 0.8]) {
      let mean = 0;
      const step = 0.001;
      for (let x = -15; x <= 15; x += step) {
        const test = new SlowTest();
        // From halfway, so that 0 does not cut the sum off.
        while (test.logRatio < SLOW_LIMIT / 2) test.observe(SLOW_LOG_RATIO, 1);
        const from = test.logRatio;
        test.observe(x, spread);
        mean += Math.exp(test.logRatio - from) * Math.exp(-Math.abs(x) / spread) * (step / (2 * spread));
      }
      expect(mean).toBeCloseTo(1, 2);
    }
  });

  it("is not swayed more by an answer that hung than by one three times as late", () => {
    expect(until(100, 0.5)).toBe(until(SLOW_LOG_RATIO, 0.5));
  });

  it("finds three times as slow within twelve observations, and 1.7 times never", () => {
    expect(until(SLOW_LOG_RATIO, 0.5)).toBeLessThanOrEqual(12);
    expect(until(Math.log(1.7), 0.3)).toBe(1000);
    expect([looksHealthy(Math.log(1.7)), looksHealthy(Math.log(1.8))]).toEqual([true, false]);
  });
});

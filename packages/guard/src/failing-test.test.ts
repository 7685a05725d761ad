import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { designFailing, FailingTest, meanRunLength, SICK_RATE } from "./failing-test.ts";

/** The same mean by following the distribution over states, answer by answer, until it has died out. */
function runLengthStepwise(rate: number, up: number, limit: number): number {
  let at = new Float64Array(limit);
  at[0] = 1;
  let mean = 0;
  for (let alive = 1; alive > 1e-13; ) {
    mean += alive;
    const next = new Float64Array(limit);
    for (let state = 0; state < limit; state++) {
      next[Math.max(0, state - 1)]! += at[state]! * (1 - rate);
      if (state + up < limit) next[state + up]! += at[state]! * rate;
    }
    at = next;
    alive = at.reduce((sum, each) => sum + each, 0);
  }
  return mean;
}

describe("the mean number of answers to a false alarm", () => {
  it("is 1 ÷ rate where one fault is enough", () => {
    expect(meanRunLength(0.01, 5, 5)).toBeCloseTo(100, 9);
  });

  it.each([
    [0.2, 3, 7],
    [0.2, 19, 58],
    [0.1, 6, 20],
    [0.5, 1, 4],
  ])("agrees with the distribution followed answer by answer (rate %f, up %i, limit %i)", (rate, up, limit) => {
    const stepwise = runLengthStepwise(rate, up, limit);
    expect(Math.abs(meanRunLength(rate, up, limit) / stepwise - 1)).toBeLessThan(1e-9);
  });

  it("agrees with the test as it runs", () => {
    const design = { baseRate: 0.05, up: 5, limit: 14, falseAlarmAfter: 0 };
    const random = seededRandom(5);
    let answers = 0;
    const alarms = 2000;
    for (let i = 0; i < alarms; i++) {
      const test = new FailingTest(design);
      for (; !test.alarmed; answers++) test.observe(random() < 0.1);
    }
    // Run lengths of such a chain are nearly exponential: four standard errors.
    expect(Math.abs(answers / alarms / meanRunLength(0.1, 5, 14) - 1)).toBeLessThan(4 / Math.sqrt(alarms));
  });
});

describe("a design of the failing test", () => {
  it.each([
    [0.003, 7_200_000],
    [0.0005, 7_200_000],
    [0.01, 100_000_000],
  ])("keeps to the error rate asked for, and no lower limit would (base %f, %i answers)", (baseRate, answers) => {
    const { up, limit, falseAlarmAfter } = designFailing(baseRate, answers);
    expect(falseAlarmAfter).toBeGreaterThanOrEqual(answers);
    expect(meanRunLength(baseRate, up, limit - 1)).toBeLessThan(answers);
    // Never below Lorden's bound, which knows nothing of the overshoot.
    const unit = -Math.log((1 - SICK_RATE) / (1 - baseRate));
    expect(falseAlarmAfter).toBeGreaterThan(Math.exp((limit - up) * unit));
  });

  it("finds 20 % of faults after four of them, among fewer than thirty answers on average", () => {
    const { up, limit } = designFailing(0.003, 7200 * 1200);
    expect([Math.ceil(limit / up), meanRunLength(SICK_RATE, up, limit) < 25]).toEqual([4, true]);
  });

  it("is found again from the other side when it changes, at the same part of the way", () => {
    const test = new FailingTest({ baseRate: 0.003, up: 19, limit: 58, falseAlarmAfter: 1 });
    test.observe(true);
    test.observe(true);
    test.design = { baseRate: 0.003, up: 19, limit: 116, falseAlarmAfter: 1 };
    expect(test.suspicion).toBeCloseTo(38 / 58, 2);
    expect([test.faults, test.answers]).toEqual([2, 2]);
  });
});

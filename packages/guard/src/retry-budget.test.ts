import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { createRetryMemory, RetryBudget, type RetryRows, retryRatio } from "./retry-budget.ts";
import { RetryKeeper, type RetrySettings } from "./retry-keeper.ts";
import { cellOf, engineOf, snapshotOf } from "./snapshot.fixture.ts";

const SETTINGS: RetrySettings = { maxRatio: 0.2, floorPer10s: 1, startTokens: 3 };
/** Utilisation 0.5 while 5 requests/s come. */
const QUIET = snapshotOf({ a: engineOf(5, 10) }, [cellOf("m", 5, { a: 1 })]);

/** A budget with its keeper on a clock that `pass` moves. */
function start(snapshot = QUIET, settings = SETTINGS) {
  const memory = createRetryMemory();
  const keeper = new RetryKeeper(memory, () => settings, 0);
  const rows = keeper.rowsOf(snapshot);
  keeper.adopt(snapshot);
  let nowMs = 0;
  const budget = new RetryBudget(memory);
  const m = rows.get("m")!;
  const pass = (ms: number, rps = 0, factorOf: (engine: string) => number = () => 1, work = 1): void => {
    for (const endMs = nowMs + ms; nowMs < endMs; ) {
      const stepMs = Math.min(200, endMs - nowMs);
      for (let i = 0; i < (rps * stepMs) / 1000; i++) budget.firstAttempt(m, work, true);
      nowMs += stepMs;
      keeper.refresh(nowMs, factorOf);
    }
  };
  const takeAll = (rows: RetryRows, work = 1): number => {
    let taken = 0;
    while (budget.take(rows, work)) taken += 1;
    return taken;
  };
  return { budget, keeper, rows, m, pass, takeAll };
}

describe("what a first attempt earns", () => {
  it("is maxRatio while there is room, and what room there is above it", () => {
    expect([0, 0.3, 0.79].map((utilisation) => retryRatio(utilisation, 0.2))).toEqual([0.2, 0.2, 0.2]);
    expect(retryRatio(0.9, 0.2)).toBeCloseTo(0.05 / 0.9, 12);
    expect([0.95, 1.2, Number.POSITIVE_INFINITY, Number.NaN].map((each) => retryRatio(each, 0.2))).toEqual([
      0, 0, 0, 0,
    ]);
  });

  it("never brings the load beyond 0.95", () => {
    for (let utilisation = 0.01; utilisation < 0.95; utilisation += 0.01)
      expect(utilisation * (1 + retryRatio(utilisation, 10))).toBeLessThanOrEqual(0.95 + 1e-12);
  });
});

describe("a retry budget", () => {
  it("begins with its start tokens and gains one in ten seconds", () => {
    const { m, pass, takeAll } = start();
    expect(takeAll(m)).toBe(3);
    pass(9_900);
    expect(takeAll(m)).toBe(0);
    pass(200);
    expect(takeAll(m)).toBe(1);
  });

  it("B065: earns a fifth of a token for each first attempt, and for a client's own retry nothing", () => {
    const { budget, m, pass, takeAll } = start();
    takeAll(m);
    pass(2_000, 5);
    expect(budget.tokens(m)).toBeCloseTo(10 * 0.2 + 0.2, 2);
    const before = budget.tokens(m);
    for (let i = 0; i < 100; i++) budget.firstAttempt(m, 1, false);
    expect(budget.tokens(m)).toBe(before);
  });

  it("earns nothing where first attempts alone fill the engines", () => {
    const { m, pass, takeAll } = start();
    pass(30_000, 10);
    takeAll(m);
    pass(10_000, 10);
    // Utilisation is 1: only the floor is left.
    expect(takeAll(m)).toBe(1);
  });

  it("holds ten tokens, or what ten seconds earn where that is more", () => {
    const large = snapshotOf({ a: engineOf(50, 100) }, [cellOf("m", 50, { a: 1 })]);
    const { budget, m, pass } = start(large);
    pass(60_000, 50);
    expect(budget.tokens(m)).toBeCloseTo(50 * 0.2 * 10 + 1, -0.5);
    // What was earned at that rate goes when the rate does.
    pass(120_000, 0);
    expect(budget.tokens(m)).toBe(10);
  });

  it("charges a retry by its work beside the mean, and at least half a token", () => {
    const { budget, m, pass } = start();
    pass(60_000, 5, () => 1, 2);
    const cost = (work: number): number => {
      const before = budget.tokens(m);
      expect(budget.take(m, work)).toBe(true);
      const paid = before - budget.tokens(m);
      budget.giveBack(m, work);
      expect(budget.tokens(m)).toBeCloseTo(before, 3);
      return paid;
    };
    expect(cost(2)).toBeCloseTo(1, 2);
    expect(cost(6)).toBeCloseTo(3, 2);
    expect(cost(0.1)).toBe(0.5);
  });

  it("is a model's own: another model's retries leave it alone, and its classes share it", () => {
    const snapshot = snapshotOf(
      { a: engineOf(5, 10) },
      [cellOf("m", 5, { a: 1 }), cellOf("also-m", 0, { a: 1 }), cellOf("other", 0, { a: 1 })],
      { models: { m: "m", "also-m": "m", other: "other" } },
    );
    const { rows, m, takeAll } = start(snapshot);
    expect(takeAll(rows.get("other")!)).toBe(3);
    expect(takeAll(m)).toBe(3);
    expect(takeAll(rows.get("also-m")!)).toBe(0);
  });

  it("goes by the worst cell of its model", () => {
    const snapshot = snapshotOf(
      { a: engineOf(5, 10), b: engineOf(9.9, 10) },
      [cellOf("m", 5, { a: 1 }), cellOf("full", 9.9, { b: 1 })],
      { models: { m: "m", full: "m" } },
    );
    const { budget, rows, m, pass, takeAll } = start(snapshot);
    for (let i = 0; i < 40; i++) {
      for (let j = 0; j < 2; j++) budget.firstAttempt(rows.get("full")!, 1, true);
      pass(200, 5);
    }
    takeAll(m);
    pass(10_000, 5);
    expect(takeAll(m)).toBeGreaterThanOrEqual(1);
    expect(takeAll(m)).toBe(0);
  });

  it("spends no more than it was given, whatever comes in whatever order", () => {
    const random = seededRandom(11);
    const { budget, m, pass } = start(snapshotOf({ a: engineOf(5, 1e6) }, [cellOf("m", 5, { a: 1 })]));
    let given = SETTINGS.startTokens;
    let spent = 0;
    for (let i = 0; i < 5000; i++) {
      const draw = random();
      if (draw < 0.5) {
        budget.firstAttempt(m, 1, true);
        given += SETTINGS.maxRatio;
      } else if (draw < 0.9) spent += budget.take(m, 1) ? 1 : 0;
      else {
        pass(100);
        given += 0.01;
      }
      expect(spent).toBeLessThanOrEqual(given + 1e-6);
    }
    expect(spent).toBeGreaterThan(100);
  });
});

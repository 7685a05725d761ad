import { describe, expect, it } from "vitest";
import { penaltyFleet } from "./penalty-fleet.ts";
import { grantPenalties } from "./penalty-limits.ts";
import { createRetryMemory, RetryBudget } from "./retry-budget.ts";
import { RetryKeeper } from "./retry-keeper.ts";
import { risenLoads } from "./risen-loads.ts";
import { cellOf, engineOf, snapshotOf } from "./snapshot.fixture.ts";

const four = { a: 0.25, b: 0.25, c: 0.25, d: 0.25 };
const half = snapshotOf(Object.fromEntries(Object.keys(four).map((id) => [id, engineOf(5, 10)])), [
  cellOf("m", 20, four),
]);

describe("load beyond the plan", () => {
  it("is what the rate has risen by, less two deviations of it by chance, on each engine by its weight", () => {
    const risen = risenLoads(half, () => ({ rps: 36, plannedRps: 20 }));
    // Of a mean over 10 s, 36/s is 720 arrivals and 20/s is 400.
    const part = 1.8 * (1 - 2 * Math.sqrt(1 / 720 + 1 / 400)) - 1;
    for (const id of Object.keys(four)) expect(risen.get(id)).toBeCloseTo(5 * part, 9);
  });

  it("is none by chance, of a falling rate, and of a cell that nobody asks for", () => {
    for (const rps of [0, 5, 20, 21]) expect(risenLoads(half, () => ({ rps, plannedRps: 20 })).size).toBe(0);
    const idle = snapshotOf({ a: engineOf(0, 10) }, [cellOf("m", 0, { a: 1 })]);
    expect(risenLoads(idle, () => ({ rps: 9, plannedRps: null })).size).toBe(0);
  });

  it("is held against the gateway's part of the plan where no rate was known when the snapshot came", () => {
    const shared = snapshotOf(half.engines, half.cells, { gateways: 2 });
    for (const plannedRps of [null, 0.1])
      expect(risenLoads(shared, () => ({ rps: 20, plannedRps })).get("a")).toBeCloseTo(
        5 * (2 * (1 - 2 * Math.sqrt(1 / 400)) - 1),
        9,
      );
  });
});

describe("the limit of penalties for slowness", () => {
  const slow = { engine: "a", kind: "slow", factor: 0.02, badness: 0.5 } as const;

  /** What is granted half a minute after a snapshot, with so many first attempts a second before it and after it. */
  function grantedAt(before: number, after: number, snapshot = half): number {
    const memory = createRetryMemory();
    const budget = new RetryBudget(memory);
    const settings = { maxRatio: 0.2, floorPer10s: 1, startTokens: 3 };
    const keeper = new RetryKeeper(memory, () => settings, 0);
    const rows = keeper.rowsOf(snapshot).get("m")!;
    const run = (fromS: number, rps: number): void => {
      for (let second = fromS + 1; second <= fromS + 30; second++) {
        for (let i = 0; i < rps; i++) budget.firstAttempt(rows, 1, true);
        keeper.refresh(second * 1000, () => 1);
      }
    };
    run(0, before);
    keeper.adopt(snapshot);
    run(30, after);
    const fleet = penaltyFleet(
      snapshot,
      () => true,
      (engine) => keeper.risenWps(engine),
    );
    return grantPenalties([slow], fleet).size;
  }

  it("knows that demand rose under a plan that stays good: three engines can't take what four do at 0.9", () => {
    expect(grantedAt(20, 20)).toBe(1);
    expect(grantedAt(20, 36)).toBe(0);
  });

  it("does not loosen when demand falls", () => {
    const full = snapshotOf(Object.fromEntries(Object.keys(four).map((id) => [id, engineOf(8, 10)])), half.cells);
    expect([grantedAt(20, 20, full), grantedAt(20, 2, full)]).toEqual([0, 0]);
  });
});

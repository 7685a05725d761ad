import { describe, expect, it } from "vitest";
import { penaltyFleet } from "./penalty-fleet.ts";
import { cellOf, engineOf, snapshotOf } from "./snapshot.fixture.ts";

describe("what the limits of penalties need of a snapshot", () => {
  const planned = { ...engineOf(1, 2), plannedFactor: 0.5, models: ["m"] };
  const snapshot = snapshotOf({ a: engineOf(3, 10), b: engineOf(4, 10), c: planned, d: engineOf(5, 10) }, [
    { ...cellOf("m", 6, { a: 0.25, b: 0.75 }), reserves: [{ engine: "d", spareWps: 2, reducedCostMs: 0 }] },
    cellOf("n", 6, { b: 1 }),
  ]);

  it("is each cell with its ring, its reserves, and what the plan keeps from traffic", () => {
    const { cells } = penaltyFleet(
      snapshot,
      () => true,
      () => 0,
    );
    const shown = cells.map((cell) => Object.fromEntries([...cell.keys()].map((id) => [id, cell.get(id)])));
    expect(shown).toEqual([{ a: 0.25, b: 0.75, c: 0, d: 0 }, { b: 1 }]);
    const has = cells.map((cell) => ["a", "b", "c", "d", "e"].filter((id) => cell.has(id)));
    expect(has).toEqual([["a", "b", "c", "d"], ["b"]]);
  });

  it("is each engine as it stands when it is asked for", () => {
    let [takes, risen] = [true, 0];
    const { engines } = penaltyFleet(
      snapshot,
      () => takes,
      () => risen,
    );
    const a = engines.get("a")!;
    expect([a.takes, a.loadWps, a.capacityWps, a.plannedFactor]).toEqual([true, 3, 10, 1]);
    [takes, risen] = [false, 2];
    expect([a.takes, a.loadWps]).toEqual([false, 5]);
  });
});

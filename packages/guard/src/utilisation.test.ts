import { describe, expect, it } from "vitest";
import { cellOf, engineOf, snapshotOf } from "./snapshot.fixture.ts";
import { type CellFlow, cellUtilisations, utilisationParts } from "./utilisation.ts";

const healthy = (): number => 1;
const steady: CellFlow = { rps: 6, plannedRps: 6 };

describe("utilisation of a cell by first attempts", () => {
  const pair = snapshotOf({ a: engineOf(2, 10), b: engineOf(4, 5) }, [cellOf("m", 6, { a: 1 / 3, b: 2 / 3 })]);

  it("is that of its engines by the plan, weighted, while its rate is as it was", () => {
    expect(cellUtilisations(pair, () => steady, healthy).get("m")).toBeCloseTo((1 / 3) * 0.2 + (2 / 3) * 0.8, 9);
  });

  it("rises and falls with the cell's own rate", () => {
    const planned = cellUtilisations(pair, () => steady, healthy).get("m")!;
    for (const factor of [0.5, 1.5, 3])
      expect(cellUtilisations(pair, () => ({ rps: 6 * factor, plannedRps: 6 }), healthy).get("m")).toBeCloseTo(
        planned * factor,
        9,
      );
  });

  it("takes what it sees, times the live gateways, where no rate was known when the snapshot came", () => {
    const halves = snapshotOf({ a: engineOf(5, 10), b: engineOf(5, 10) }, [cellOf("m", 10, { a: 0.5, b: 0.5 })], {
      gateways: 4,
    });
    for (const plannedRps of [null, 0.01])
      expect(cellUtilisations(halves, () => ({ rps: 4, plannedRps }), healthy).get("m")).toBeCloseTo(0.8, 9);
  });

  it("needs no plan: a bootstrap's engines have no load yet", () => {
    const bootstrap = snapshotOf({ a: engineOf(0, 10) }, [cellOf("m", 0, { a: 1 })]);
    for (const plannedRps of [null, 3])
      expect(cellUtilisations(bootstrap, () => ({ rps: 3, plannedRps }), healthy).get("m")).toBeCloseTo(0.3, 9);
  });

  it("lets what a dead engine took fall on the others", () => {
    const engines = { a: engineOf(4, 10), b: engineOf(4, 10), c: engineOf(4, 10) };
    const three = snapshotOf(engines, [cellOf("m", 12, { a: 1 / 3, b: 1 / 3, c: 1 / 3 })]);
    const flow = (): CellFlow => ({ rps: 12, plannedRps: 12 });
    expect(cellUtilisations(three, flow, (id) => (id === "a" ? 0 : 1)).get("m")).toBeCloseTo(0.6, 9);
    expect(cellUtilisations(three, flow, () => 0).get("m")).toBe(Number.POSITIVE_INFINITY);
    const half = cellUtilisations(three, flow, (id) => (id === "a" ? 0.5 : 1)).get("m")!;
    expect(half).toBeGreaterThan(0.4);
    expect(half).toBeLessThan(0.6);
  });

  it("scales only the cell's own part of what it shares with others", () => {
    const shared = snapshotOf({ a: engineOf(6, 10) }, [cellOf("small", 1, { a: 1 }), cellOf("large", 4, { a: 1 })]);
    const flow = (name: string): CellFlow => ({ rps: name === "small" ? 3 : 4, plannedRps: name === "small" ? 1 : 4 });
    // Of the 6 one unit is of another cluster, four are the large cell's, and one is the small cell's, now three.
    for (const name of ["small", "large"])
      expect(cellUtilisations(shared, flow, healthy).get(name)).toBeCloseTo(0.8, 9);
  });

  it("comes in parts of which none is large, and to the same", () => {
    const ids = Array.from({ length: 1000 }, (_, at) => `e${at}`);
    const engines = Object.fromEntries(ids.map((id, at) => [id, engineOf(1 + (at % 7), 10)]));
    const weights = Object.fromEntries(ids.map((id) => [id, 1 / ids.length]));
    const large = snapshotOf(
      engines,
      Array.from({ length: 20 }, (_, at) => cellOf(`m${at}`, 6, weights)),
    );
    let looked = 0;
    const most = { cells: 0, engines: 0 };
    const parts = utilisationParts(
      large,
      () => {
        most.cells = Math.max(most.cells, ++looked);
        return steady;
      },
      () => {
        most.engines = Math.max(most.engines, ++looked);
        return 1;
      },
    );
    let yields = 0;
    let part = parts.next();
    for (; part.done !== true; part = parts.next()) {
      looked = 0;
      yields += 1;
    }
    expect(part.value).toEqual(cellUtilisations(large, () => steady, healthy));
    expect(most.cells).toBe(5);
    expect(most.engines).toBeLessThanOrEqual(5 + 256);
    expect(yields).toBe(3 + 3 + 3);
  });
});

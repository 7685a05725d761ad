import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { grantPenalties, type PenaltyEngine, type PenaltyFleet, type PenaltyWish } from "./penalty-limits.ts";
import { grantByScan } from "./penalty-scan.fixture.ts";

const EVEN: PenaltyEngine = { takes: true, plannedFactor: 1, loadWps: 5, capacityWps: 10 };

/** One cell with these shares. */
function fleetOf(shares: Readonly<Record<string, number>>, own: Readonly<Record<string, Partial<PenaltyEngine>>> = {}) {
  const engines = new Map(Object.keys(shares).map((id) => [id, { ...EVEN, ...own[id] }]));
  return { engines, cells: [new Map(Object.entries(shares))] } satisfies PenaltyFleet;
}

const wish = (engine: string, badness = 0.5, more: Partial<PenaltyWish> = {}): PenaltyWish => ({
  engine,
  kind: "failing",
  factor: 0.02,
  badness,
  ...more,
});

const granted = (wishes: readonly PenaltyWish[], fleet: PenaltyFleet): string[] =>
  [...grantPenalties(wishes, fleet)].map(({ engine, kind }) => `${engine} ${kind}`).sort();

const four = { a: 0.25, b: 0.25, c: 0.25, d: 0.25 };
const ten = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`e${i}`, 0.1]));

describe("the limits of penalties", () => {
  it("let one engine go to the floor, however much of the cell it owns", () => {
    expect(granted([wish("a")], fleetOf({ a: 0.9, b: 0.1 }))).toEqual(["a failing"]);
  });

  it("never touch a sole candidate; dead and draining engines are no candidates", () => {
    expect(granted([wish("a")], fleetOf({ a: 1 }))).toEqual([]);
    expect(granted([wish("a")], fleetOf({ a: 0.5, b: 0.5 }, { b: { takes: false } }))).toEqual([]);
    const dying = fleetOf(four, { a: { takes: false } });
    expect(granted([wish("a", 0.9), wish("b", 0.5)], dying)).toEqual(["a failing", "b failing"]);
    expect(granted([wish("a")], fleetOf({ a: 1, reserve: 0 }))).toEqual(["a failing"]);
  });

  it("take at most 30 % of the slots otherwise, worst first", () => {
    expect(granted([wish("a", 0.2), wish("b", 0.9)], fleetOf(four))).toEqual(["b failing"]);
    const all = Object.keys(ten).map((id, i) => wish(id, i / 10));
    expect(granted(all, fleetOf(ten))).toEqual(["e7 failing", "e8 failing", "e9 failing"]);
  });

  it("put failing before slow", () => {
    expect(granted([wish("a", 1, { kind: "slow" }), wish("b", 0.1)], fleetOf(four))).toEqual(["b failing"]);
  });

  it("count the part that is removed, not the engine", () => {
    const half = (id: string) => wish(id, 0.5, { factor: 0.5 });
    expect(granted([half("a"), half("b"), half("c")], fleetOf(four))).toEqual(["a failing", "b failing"]);
  });

  it("hold in every cell of an engine", () => {
    const fleet: PenaltyFleet = {
      engines: new Map(["a", "b", "c"].map((id) => [id, EVEN])),
      cells: [new Map(Object.entries({ a: 0.1, b: 0.1, c: 0.8 })), new Map(Object.entries({ a: 0.3, b: 0.7 }))],
    };
    expect(granted([wish("a", 0.9), wish("b", 0.5)], fleet)).toEqual(["a failing"]);
  });

  it("don't let slowness push the rest over 95 % of its capacity, by the plan's figures; failing may", () => {
    const tight = fleetOf(four, Object.fromEntries(Object.keys(four).map((id) => [id, { loadWps: 7.5 }])));
    expect(granted([wish("a", 0.5, { kind: "slow" })], tight)).toEqual([]);
    expect(granted([wish("a")], tight)).toEqual(["a failing"]);
    expect(granted([wish("a", 0.5, { kind: "slow" })], fleetOf(four))).toEqual(["a slow"]);
  });

  it("count what the plan took from failing engines already, so that plan and penalties don't empty a cell in turns", () => {
    const planned = { plannedFactor: 0.02, capacityWps: 0.2 };
    const shares = { ...ten, e0: 0.004, e1: 0.004, e2: 0.004 };
    const fleet = fleetOf(shares, { e0: planned, e1: planned, e2: planned });
    expect(granted([wish("e3", 0.9)], fleet)).toEqual([]);
    // Those that are planned so are no worse off for being penalised as well.
    expect(granted([wish("e0", 0.9)], fleet)).toEqual(["e0 failing"]);
    expect(granted([wish("e3", 0.9)], fleetOf(shares, { e0: planned, e1: planned }))).toEqual(["e3 failing"]);
  });

  it("hold for any wishes of any fleet", () => {
    const random = seededRandom(23);
    for (let round = 0; round < 300; round++) {
      const ids = Array.from({ length: 2 + Math.floor(random() * 9) }, (_, i) => `e${i}`);
      const raw = ids.map(() => random());
      const sum = raw.reduce((total, each) => total + each, 0);
      const shares = Object.fromEntries(ids.map((id, i) => [id, raw[i]! / sum]));
      const takes = Object.fromEntries(ids.map((id) => [id, { takes: random() > 0.2, loadWps: 10 * random() }]));
      const fleet = fleetOf(shares, takes);
      const wishes = ids.flatMap((id) =>
        random() < 0.6 ? [wish(id, random(), { kind: random() < 0.5 ? "failing" : "slow" })] : [],
      );
      const cut = [...grantPenalties(wishes, fleet)].filter(({ engine }) => takes[engine]!.takes);
      const removed = new Map<string, number>();
      for (const { engine, factor } of cut) removed.set(engine, shares[engine]! * (1 - factor));
      const all = [...removed.values()].reduce((total, each) => total + each, 0);
      if (removed.size > 1) expect(all).toBeLessThanOrEqual(0.3);
      const living = ids.filter((id) => takes[id]!.takes);
      if (living.length === 1) expect(cut).toEqual([]);
    }
  });

  it("grant what a plain scan of everything for each wish grants, in fleets of several cells", () => {
    const random = seededRandom(29);
    let grants = 0;
    for (let round = 0; round < 2000; round++) {
      const ids = Array.from({ length: 1 + Math.floor(random() * 10) }, (_, i) => `e${i}`);
      const engines = new Map(ids.filter(() => random() < 0.97).map((id) => [id, anyEngine(random)]));
      const cells = Array.from(
        { length: 1 + Math.floor(random() * 4) },
        () => new Map(ids.filter(() => random() < 0.7).map((id) => [id, random() < 0.2 ? 0 : random() / 4])),
      );
      const wishes = ids.flatMap((id) =>
        (["failing", "slow"] as const)
          .filter(() => random() < 0.4)
          .map((kind) => wish(id, random(), { kind, factor: random() < 0.5 ? 0.02 : random() })),
      );
      const now = grantPenalties(wishes, { engines, cells });
      expect(now, `round ${round}`).toEqual(grantByScan(wishes, { engines, cells }));
      grants += now.size;
    }
    expect(grants).toBeGreaterThan(2000);
  });
});

function anyEngine(random: () => number): PenaltyEngine {
  const plannedFactor = random() < 0.2 ? random() : 1;
  return {
    takes: random() < 0.85,
    plannedFactor,
    loadWps: random() < 0.1 ? 0 : 9 * random() * plannedFactor,
    capacityWps: 10 * plannedFactor,
  };
}

import { describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import { solveSimplex } from "./solve.ts";

type Knots = readonly (readonly [number, number])[];

interface Small {
  readonly demand: readonly number[];
  /** By cell, then engine. */
  readonly costs: readonly (readonly number[])[];
  readonly capacity: readonly number[];
  readonly curve: Knots;
  readonly headroom?: number;
  readonly headroomMs?: number;
  readonly shedMs?: readonly number[];
  readonly churn?: { readonly reference: readonly number[]; readonly moveMs: number };
}

function problemOf(small: Small): Problem {
  const cells = small.demand.length;
  const engines = small.capacity.length;
  const every = Array.from({ length: engines }, (_, engine) => engine);
  return {
    demandWps: Float64Array.from(small.demand),
    arcStart: Uint32Array.from({ length: cells + 1 }, (_, cell) => cell * engines),
    arcEngine: Uint32Array.from(small.demand.flatMap(() => every)),
    arcCostMs: Float64Array.from(small.costs.flat()),
    curves: {
      capacityWps: Float64Array.from(small.capacity),
      knotStart: Uint32Array.from({ length: engines + 1 }, (_, engine) => engine * small.curve.length),
      knotRho: Float64Array.from(every.flatMap(() => small.curve.map(([rho]) => rho))),
      knotMs: Float64Array.from(every.flatMap(() => small.curve.map(([, ms]) => ms))),
      headroom: small.headroom ?? 0,
      headroomMs: small.headroomMs ?? 0,
    },
    shedMs: Float64Array.from(small.shedMs ?? small.demand.map(() => 60_000)),
    shedStepMs: 0,
    shedSteps: 0,
    ...(small.churn === undefined
      ? {}
      : {
          churn: {
            referenceWps: Float64Array.from(small.churn.reference),
            moveMs: new Float64Array(cells * engines).fill(small.churn.moveMs),
          },
        }),
  };
}

const straight: Knots = [
  [0, 0],
  [1, 400],
];
const knotted: Knots = [
  [0, 0],
  [0.5, 50],
  [1, 250],
];

function near(values: Iterable<number>, wanted: readonly number[]): void {
  const got = [...values];
  expect(got).toHaveLength(wanted.length);
  for (const [i, value] of wanted.entries()) expect(got[i]).toBeCloseTo(value, 8);
}

describe("the network simplex against closed forms", () => {
  it("splits 80 over a near and a far engine so that both marginals and the distance agree", () => {
    const solution = solveSimplex(problemOf({ demand: [80], costs: [[0, 60]], capacity: [100, 100], curve: straight }));
    expect(solution.status).toBe("solved");
    near(solution.loadWps, [43.75, 36.25]);
    near(solution.priceMs, [350, 290]);
    expect(solution.objectiveMs).toBeCloseTo(15_087.5, 8);
    expect(solution.lowerBoundMs).toBeCloseTo(15_087.5, 6);
  });

  it("fills an engine to its capacity and prices the capacity at what the far one costs more", () => {
    // The wall at 0.94 of 100: the same curve on a capacity of 94.
    const wall: Knots = [
      [0, 0],
      [1, 376],
    ];
    const solution = solveSimplex(problemOf({ demand: [186], costs: [[0, 60]], capacity: [94, 94], curve: wall }));
    near(solution.loadWps, [94, 92]);
    near(solution.priceMs, [796, 736]);
    expect(solution.objectiveMs).toBeCloseTo(74_720, 7);
  });

  it("rests on a knot of the curve, where the price is a range", () => {
    const at90 = solveSimplex(problemOf({ demand: [90], costs: [[0, 120]], capacity: [100, 100], curve: knotted }));
    near(at90.loadWps, [50, 40]);
    near(at90.priceMs, [200, 80]);
    expect(at90.objectiveMs).toBeCloseTo(8900, 8);
    const at100 = solveSimplex(problemOf({ demand: [100], costs: [[0, 120]], capacity: [100, 100], curve: knotted }));
    near(at100.loadWps, [50, 50]);
    expect(at100.priceMs[0]).toBeGreaterThanOrEqual(220 - 1e-9);
    expect(at100.priceMs[0]).toBeLessThanOrEqual(250 + 1e-9);
    expect(at100.priceMs[0]! - at100.priceMs[1]!).toBeCloseTo(120, 8);
  });

  it("sends the third of the three clusters' example that the optimum sends, to the last digit", () => {
    const curve: Knots = [
      [0, 0],
      [0.7, 20],
      [0.85, 100],
      [0.95, 300],
      [1, 700],
    ];
    const costs = [
      [202, 280, 340],
      [280, 202, 260],
      [340, 260, 202],
    ];
    const solution = solveSimplex(problemOf({ demand: [90, 120, 40], costs, capacity: [100, 100, 80], curve }));
    near(solution.flowWps, [90, 0, 0, 0, 120 - 2742 / 90, 2742 / 90, 0, 0, 40]);
    near(solution.priceMs, [2000, 1981 + 1 / 3, 1923 + 1 / 3]);
    expect(solution.objectiveMs).toBeCloseTo(98_730.2, 6);
    expect(solution.objectiveMs - solution.lowerBoundMs).toBeLessThanOrEqual(1e-9 * solution.objectiveMs);
  });

  it("uses the headroom before it sheds, and sheds only what capacity can't take", () => {
    const ramp = { costs: [[0]], capacity: [100], curve: [[0, 0]] as Knots, headroom: 0.06, headroomMs: 6000 };
    const inside = solveSimplex(problemOf({ demand: [97], ...ramp }));
    near(inside.priceMs, [3000]);
    near(inside.shedWps, [0]);
    const over = solveSimplex(problemOf({ demand: [103], ...ramp }));
    near(over.shedWps, [3]);
    near(over.priceMs, [60_000]);
  });

  it("sheds the class of low priority until it is gone, however much work the other has per request", () => {
    // Work 10 a request and priority rank 1; work 1 and rank 0.
    const problem = problemOf({
      demand: [20, 5],
      costs: [[1], [10]],
      capacity: [22],
      curve: [[0, 0]],
      shedMs: [120_000, 60_000],
    });
    near(solveSimplex(problem).shedWps, [0, 3]);
    const more = { ...problem, demandWps: Float64Array.of(24, 5) };
    near(solveSimplex(more).shedWps, [2, 5]);
  });

  it("moves against a churn price only as far as the gain exceeds it, and holds where it doesn't", () => {
    const base = { demand: [100], costs: [[0, 0]], capacity: [100, 100], curve: straight };
    const at = (moveMs: number) => solveSimplex(problemOf({ ...base, churn: { reference: [60, 40], moveMs } }));
    near(at(80).flowWps, [55, 45]);
    near(at(80).priceMs, [440, 360]);
    expect(at(80).objectiveMs).toBeCloseTo(20_600, 7);
    for (const moveMs of [160, 200, 5000]) {
      const held = at(moveMs);
      near(held.flowWps, [60, 40]);
      expect(held.objectiveMs - held.lowerBoundMs).toBeLessThanOrEqual(1e-9 * held.objectiveMs);
    }
    const price = at(200).priceMs;
    expect(price[0]).toBeGreaterThanOrEqual(480 - 1e-9);
    expect(price[0]).toBeLessThanOrEqual(520 + 1e-9);
  });

  it("treats two engines of 50 as one of 100, and scales with demand and capacity together", () => {
    const one = solveSimplex(problemOf({ demand: [80], costs: [[0, 60]], capacity: [100, 100], curve: straight }));
    const split = solveSimplex(
      problemOf({ demand: [80], costs: [[0, 0, 60]], capacity: [50, 50, 100], curve: straight }),
    );
    expect(split.objectiveMs).toBeCloseTo(one.objectiveMs, 7);
    near([split.loadWps[0]! + split.loadWps[1]!], [43.75]);
    for (const s of [1e-4, 1e4]) {
      const scaled = solveSimplex(
        problemOf({ demand: [80 * s], costs: [[0, 60]], capacity: [100 * s, 100 * s], curve: straight }),
      );
      near(scaled.priceMs, [350, 290]);
      expect(scaled.objectiveMs / s).toBeCloseTo(one.objectiveMs, 6);
    }
  });
});

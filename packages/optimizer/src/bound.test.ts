import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { lowerBound, objective, splitGap } from "./bound.ts";
import { makeProblem, randomProblem } from "./problem.fixture.ts";
import type { Problem } from "./problem.ts";

/** Flows that keep the constraints and nothing else: each cell spread at random as far as there is room, the rest shed. */
function anyFlows(problem: Problem, random: () => number) {
  const flowWps = new Float64Array(problem.arcEngine.length);
  const loadWps = new Float64Array(problem.curves.capacityWps.length);
  const shedWps = Float64Array.from(problem.demandWps);
  for (let cell = 0; cell < shedWps.length; cell++) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      const room = problem.curves.capacityWps[engine]! - loadWps[engine]!;
      const flow = Math.min(random() * shedWps[cell]!, Math.max(0, room));
      flowWps[arc] = flow;
      loadWps[engine]! += flow;
      shedWps[cell]! -= flow;
    }
  }
  return { flowWps, loadWps, shedWps };
}

/** Moves priced from references that are any part of the demand, all of it at every second cell. */
function anyChurn(problem: Problem, random: () => number): NonNullable<Problem["churn"]> {
  const held = new Float64Array(problem.arcEngine.length);
  const moveMs = new Float64Array(held.length);
  for (const [cell, demand] of problem.demandWps.entries()) {
    const [start, end] = [problem.arcStart[cell]!, problem.arcStart[cell + 1]!];
    const parts = Array.from({ length: end - start }, () => (random() < 0.5 ? 0 : random()));
    const sum = parts.reduce((total, part) => total + part, 0) * (random() < 0.5 ? 1 : 1.5);
    for (const [at, part] of parts.entries()) held[start + at] = sum > 0 ? (demand * part) / sum : 0;
    moveMs.fill(1000 * random() ** 4, start, end);
  }
  return { referenceWps: held, moveMs };
}

describe("the lower bound", () => {
  const random = seededRandom(5);
  const cases = Array.from({ length: 300 }, () => {
    const problem = randomProblem(random, 1 + Math.floor(5 * random()), 1 + Math.floor(5 * random()), 0.3 + random());
    const size = 10 ** (5 * random());
    const prices = problem.curves.capacityWps.map(() => size * random());
    const churned = random() < 0.5 ? problem : { ...problem, churn: anyChurn(problem, random) };
    return { problem: churned, flows: anyFlows(problem, random), prices };
  });

  it("is below the cost of any flows for any prices", () => {
    for (const { problem, flows, prices } of cases) {
      const cost = objective(problem, flows);
      expect(lowerBound(problem, prices).lowerBoundMs).toBeLessThanOrEqual(cost + 1e-9 * Math.max(1, cost));
    }
  });

  it("leaves a gap that its parts sum to, none of them negative", () => {
    for (const { problem, flows, prices } of cases) {
      const split = splitGap(problem, flows, prices);
      const parts = [...split.arcMs, ...split.shedMs, ...split.engineMs];
      const scale = Math.max(1, split.objectiveMs, Math.abs(split.lowerBoundMs));
      expect(Math.min(...parts)).toBeGreaterThanOrEqual(-1e-9 * scale);
      const sum = parts.reduce((total, part) => total + part, 0);
      expect(Math.abs(sum - (split.objectiveMs - split.lowerBoundMs))).toBeLessThan(1e-9 * scale);
    }
  });

  it("is the cost itself at the right prices", () => {
    // Q = 400ρ on 100: 80 split (43.75, 36.25) between engines 60 ms apart has marginals 350 and 290.
    const problem = makeProblem({
      demand: [80],
      cost: [[0, 60]],
      capacity: [100, 100],
      curves: [
        [
          [0, 0],
          [1, 400],
        ],
      ],
    });
    const { lowerBoundMs, demandPriceMs } = lowerBound(problem, Float64Array.of(350, 290));
    expect(lowerBoundMs).toBeCloseTo(15_087.5, 8);
    expect([...demandPriceMs]).toEqual([350]);
  });

  it("prices demand between what is held and what a move costs, at the lowest price that bounds best", () => {
    const curve = [
      [0, 0],
      [1, 400],
    ] as const;
    const held = (moveMs: number): Problem => ({
      ...makeProblem({ demand: [100], cost: [[0, 0]], capacity: [100, 100], curves: [curve] }),
      churn: { referenceWps: Float64Array.of(60, 40), moveMs: Float64Array.of(moveMs, moveMs) },
    });
    // 80 ms a move: (55, 45), marginals 440 and 360, and a request costs 440 whoever takes it.
    expect(lowerBound(held(80), Float64Array.of(440, 360)).demandPriceMs[0]).toBe(440);
    expect(lowerBound(held(80), Float64Array.of(440, 360)).lowerBoundMs).toBeCloseTo(20_600, 8);
    // 200 ms: nothing moves, marginals 480 and 320; the price may be 480 to 520.
    expect(lowerBound(held(200), Float64Array.of(480, 320)).demandPriceMs[0]).toBe(480);
    const flows = { flowWps: Float64Array.of(60, 40), loadWps: Float64Array.of(60, 40), shedWps: Float64Array.of(0) };
    expect(lowerBound(held(200), Float64Array.of(480, 320)).lowerBoundMs).toBeCloseTo(objective(held(200), flows), 8);
  });

  it("prices what is shed by its steps", () => {
    // No engine: all 20 units are shed, through the steps at 1000, 1300, 1600 and 1900 ms.
    const problem = makeProblem({
      demand: [20],
      cost: [[]],
      capacity: [],
      curves: [],
      shedMs: [1000],
      shedStepMs: 300,
      shedSteps: 4,
    });
    expect(lowerBound(problem, new Float64Array(0)).lowerBoundMs).toBeCloseTo(5 * (1000 + 1300 + 1600 + 1900), 9);
    const flows = { flowWps: new Float64Array(0), loadWps: new Float64Array(0), shedWps: Float64Array.of(12) };
    expect(objective(problem, flows)).toBeCloseTo(5 * 1000 + 5 * 1300 + 2 * 1600, 9);
  });
});

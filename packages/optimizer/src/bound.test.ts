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

describe("the lower bound", () => {
  const random = seededRandom(5);
  const cases = Array.from({ length: 300 }, () => {
    const problem = randomProblem(random, 1 + Math.floor(5 * random()), 1 + Math.floor(5 * random()), 0.3 + random());
    const size = 10 ** (5 * random());
    const prices = problem.curves.capacityWps.map(() => size * random());
    return { problem, flows: anyFlows(problem, random), prices };
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

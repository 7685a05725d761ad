import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { lowestPrices, priceRanges } from "./price-ranges.ts";
import { makeProblem, randomProblem } from "./problem.fixture.ts";
import type { Problem } from "./problem.ts";
import { solveSimplex } from "./simplex/solve.ts";

function rangesOf(problem: Problem) {
  const solution = solveSimplex(problem);
  return { solution, ranges: priceRanges(problem, solution, solution.priceMs) };
}

describe("price ranges", () => {
  const knots = [
    [0, 0],
    [0.5, 50],
    [1, 250],
  ] as const;

  it("are the slopes on both sides of two knots, and one price between them", () => {
    // At 50 : 50 both engines rest on their knot: any π in [220, 250] proves the plan.
    const { ranges } = rangesOf(
      makeProblem({ demand: [100], cost: [[0, 120]], capacity: [100, 100], curves: [knots] }),
    );
    expect(ranges.cellLowMs[0]).toBeCloseTo(220, 6);
    expect(ranges.cellHighMs[0]).toBeCloseTo(250, 6);
    const single = rangesOf(makeProblem({ demand: [90], cost: [[0, 120]], capacity: [100, 100], curves: [knots] }));
    expect(single.ranges.cellLowMs[0]).toBeCloseTo(200, 6);
    expect(single.ranges.cellHighMs[0]).toBeCloseTo(200, 6);
  });

  it("reach to the shed price where engines are full", () => {
    const { ranges } = rangesOf(makeProblem({ demand: [100], cost: [[10]], capacity: [100], curves: [[[0, 0]]] }));
    expect(ranges.cellLowMs[0]).toBeCloseTo(10, 6);
    expect(ranges.cellHighMs[0]).toBe(60_000);
  });

  it("are what one unit more and one unit less cost, on 60 random fleets", () => {
    const random = seededRandom(11);
    for (let run = 0; run < 60; run++) {
      const problem = randomProblem(random, 1 + Math.floor(4 * random()), 1 + Math.floor(5 * random()), 1.3 * random());
      const { solution, ranges } = rangesOf({ ...problem, shedSteps: 1, shedStepMs: 0 });
      for (const [cell, demand] of problem.demandWps.entries()) {
        const step = 1e-5 * demand;
        if (step === 0) continue;
        const costAt = (change: number): number => {
          const demandWps = problem.demandWps.slice();
          demandWps[cell] = demand + change;
          return solveSimplex({ ...problem, shedSteps: 1, shedStepMs: 0, demandWps }, { targetGap: 1e-13 }).objectiveMs;
        };
        const more = (costAt(step) - solution.objectiveMs) / step;
        const fewer = (solution.objectiveMs - costAt(-step)) / step;
        const near = 1e-3 * Math.max(1, Math.abs(more)) + (1e-9 * solution.objectiveMs) / step;
        const at = `run ${run}, cell ${cell}`;
        expect(Math.abs(ranges.cellHighMs[cell]! - more), at).toBeLessThan(near);
        expect(Math.abs(ranges.cellLowMs[cell]! - fewer), at).toBeLessThan(near);
      }
    }
  });

  it("give the lowest prices, which prove as much", () => {
    const problem = makeProblem({ demand: [100], cost: [[0, 120, 900]], capacity: [100, 100, 100], curves: [knots] });
    const { solution } = rangesOf(problem);
    const { priceMs, lowerBoundMs } = lowestPrices(problem, solution, Float64Array.of(240, 120, 0));
    expect(priceMs[0]).toBeCloseTo(220, 6);
    expect(priceMs[1]).toBeCloseTo(100, 6);
    // Idle: its marginal at no load.
    expect(priceMs[2]).toBe(0);
    expect(lowerBoundMs).toBeCloseTo(solution.objectiveMs, 6);
  });
});

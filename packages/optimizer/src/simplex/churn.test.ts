import { describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import { noisyDemand, randomInstance } from "./instance.ts";
import { type SimplexSolution, solveSimplex } from "./solve.ts";

/** The next tick: the weights of `solution` times the demand of `problem`, and 1 ms for what moves. */
function withReference(problem: Problem, before: Problem, solution: SimplexSolution): Problem {
  const referenceWps = new Float64Array(problem.arcEngine.length);
  for (let cell = 0; cell < problem.demandWps.length; cell++) {
    const carried = before.demandWps[cell]! - solution.shedWps[cell]!;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      referenceWps[arc] = carried > 0 ? (solution.flowWps[arc]! / carried) * problem.demandWps[cell]! : 0;
  }
  return { ...problem, churn: { referenceWps, moveMs: new Float64Array(referenceWps.length).fill(1) } };
}

/** Traffic that two sets of flows place differently, as a part of all demand. */
function moved(problem: Problem, a: Float64Array, b: Float64Array): number {
  let sum = 0;
  let all = 0;
  for (const [arc, flow] of a.entries()) sum += Math.abs(flow - b[arc]!);
  for (const demand of problem.demandWps) all += demand;
  return sum / 2 / all;
}

describe("a price on moving", () => {
  it.each([0.3, 0.7, 0.9, 0.97])(
    "holds everything, without a pivot, while nothing changes at a utilisation of %s",
    (utilisation) => {
      const problem = randomInstance({ cells: 120, engines: 150, seed: 11, utilisation });
      let solution = solveSimplex(problem);
      const first = solution.flowWps;
      for (let tick = 0; tick < 5; tick++) {
        solution = solveSimplex(withReference(problem, problem, solution), { warm: solution.warm });
        expect(solution.pivots).toBe(0);
        expect(moved(problem, solution.flowWps, first)).toBeLessThan(1e-10);
      }
    },
  );

  it.each([0.7, 0.9])(
    "moves at most three fifths of what is moved without it, for little cost, when demand is noisy (%s)",
    (utilisation) => {
      const before = randomInstance({ cells: 120, engines: 150, seed: 12, utilisation });
      const solution = solveSimplex(before);
      const problem = noisyDemand(before, 0.03, 4);
      const priced = withReference(problem, before, solution);
      const held = solveSimplex(priced, { warm: solution.warm });
      const free = solveSimplex(problem, { warm: solution.warm });
      const { referenceWps } = priced.churn!;
      expect(held.status).toBe("solved");
      expect(moved(problem, held.flowWps, referenceWps)).toBeLessThan(0.6 * moved(problem, free.flowWps, referenceWps));
      expect(held.objectiveMs).toBeGreaterThanOrEqual(free.objectiveMs * (1 - 1e-9));
      expect(held.objectiveMs).toBeLessThan(free.objectiveMs * 1.005);
    },
  );
});

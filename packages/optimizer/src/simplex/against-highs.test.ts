import { describe, expect, it } from "vitest";
import { leastCostByHighs } from "../highs.fixture.ts";
import { oddProblem } from "./odd-problem.fixture.ts";
import { solveSimplex } from "./solve.ts";

describe("the network simplex against another program", () => {
  it("costs what HiGHS's quadratic solver says is the least", () => {
    let compared = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const problem = oddProblem(seed);
      const all = problem.demandWps.reduce((sum, value) => sum + value, 0);
      // HiGHS works with absolute tolerances: only where the numbers are of ordinary size does it say anything.
      if (problem.arcEngine.length === 0 || all < 1 || all > 1e4) continue;
      const { costMs, errorMs } = leastCostByHighs(problem);
      const { objectiveMs } = solveSimplex(problem);
      expect(Math.abs(objectiveMs - costMs), `seed ${seed}`).toBeLessThanOrEqual(errorMs + 1e-7 * Math.abs(costMs));
      compared++;
    }
    expect(compared).toBeGreaterThan(15);
  });
});

import { seededRandom } from "@guidevane/core";
import { createCurveEvaluator } from "@guidevane/native";
import { describe, expect, it } from "vitest";
import { priceRanges } from "./price-ranges.ts";
import { randomProblem } from "./problem.fixture.ts";
import type { Problem } from "./problem.ts";
import { solveSimplex } from "./simplex/solve.ts";

/** Moves priced from flows that some other demand would have had. */
function withMoves(problem: Problem, random: () => number): Problem {
  const other = solveSimplex({
    ...problem,
    demandWps: problem.demandWps.map((demand) => demand * (0.7 + 0.6 * random())),
  });
  return {
    ...problem,
    churn: { referenceWps: other.flowWps, moveMs: new Float64Array(problem.arcEngine.length).fill(50 * random()) },
  };
}

describe("the worth of a unit of capacity", () => {
  it("is what a little more of it saves, by knots, ramp, sheds and moves, wherever its price is one", () => {
    const random = seededRandom(31);
    const { evaluate } = createCurveEvaluator("ts");
    let compared = 0;
    for (let run = 0; run < 40; run++) {
      const bare = randomProblem(random, 1 + Math.floor(4 * random()), 1 + Math.floor(5 * random()), 0.3 + random());
      const problem = run % 2 === 0 ? bare : withMoves(bare, random);
      const solution = solveSimplex(problem, { targetGap: 1e-13 });
      const { engineLowMs, engineHighMs } = priceRanges(problem, solution, solution.priceMs);
      const columns = () => new Float64Array(solution.loadWps.length);
      const out = { value: columns(), slope: columns(), curvature: columns() };
      evaluate(problem.curves, solution.loadWps, out);
      for (const [engine, capacity] of problem.curves.capacityWps.entries()) {
        if (capacity === 0 || engineHighMs[engine]! - engineLowMs[engine]! > 1e-6) continue;
        const worthMs = (solution.loadWps[engine]! * solution.priceMs[engine]! - out.value[engine]!) / capacity;
        const step = 1e-4 * capacity;
        const costWith = (change: number): number => {
          const capacityWps = problem.curves.capacityWps.slice();
          capacityWps[engine] = capacity + change;
          return solveSimplex({ ...problem, curves: { ...problem.curves, capacityWps } }, { targetGap: 1e-13 })
            .objectiveMs;
        };
        const [gained, lost] = [solution.objectiveMs - costWith(step), costWith(-step) - solution.objectiveMs];
        const near = 1e-9 * solution.objectiveMs + 1e-9;
        // Worth bounds what adding gains from above, and what losing costs from below; both meet it as the step shrinks.
        expect(gained, `run ${run}, engine ${engine}`).toBeLessThanOrEqual(worthMs * step + near);
        expect(lost, `run ${run}, engine ${engine}`).toBeGreaterThanOrEqual(worthMs * step - near);
        expect(lost - gained, `run ${run}, engine ${engine}`).toBeLessThan(
          0.01 * Math.abs(worthMs * step) + 2 * near + 1e-4 * step,
        );
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(40);
  });
});

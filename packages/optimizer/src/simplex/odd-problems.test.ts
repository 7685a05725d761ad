import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./faults.fixture.ts";
import { nextProblem, oddProblem } from "./odd-problem.fixture.ts";
import { solveSimplex } from "./solve.ts";

/** The TypeScript twin alone; `truth.test.ts` has both, and as many problems as one likes. */
describe("the network simplex on odd problems", () => {
  it("conserves demand, keeps capacities and proves its gap on 600 problems from nothing", () => {
    for (let seed = 1; seed <= 600; seed++) {
      const problem = oddProblem(seed);
      expect(faultsOf(problem, solveSimplex(problem)), `seed ${seed}`).toEqual([]);
    }
  });

  it("does so with a price on moving, whatever the reference", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const problem = oddProblem(seed, true);
      expect(faultsOf(problem, solveSimplex(problem)), `seed ${seed}`).toEqual([]);
    }
  });

  it.each([false, true])(
    "does so from the last tree, tick after tick, while demand and engines change (churn: %s)",
    (churn) => {
      for (let seed = 1; seed <= 60; seed++) {
        const random = seededRandom(seed);
        let problem = oddProblem(seed, churn);
        let solution = solveSimplex(problem);
        for (let tick = 0; tick < 5; tick++) {
          problem = nextProblem(problem, solution, random);
          solution = solveSimplex(problem, { warm: solution.warm });
          expect(faultsOf(problem, solution), `seed ${seed}, tick ${tick}`).toEqual([]);
        }
      }
    },
  );

  it("proves its gap where demand falls to a hundredth and an engine's flat curve is hardly used", () => {
    // The price of such an engine is off by rounding, on all of its capacity.
    const seed = 1_796_124_287;
    const before = oddProblem(seed);
    const after = nextProblem(before, solveSimplex(before), seededRandom(seed));
    const { warm } = solveSimplex(before);
    expect(after.demandWps[0]).toBeLessThan(before.demandWps[0]! / 99);
    expect(faultsOf(after, solveSimplex(after, { warm }))).toEqual([]);
  });

  it("makes no pivot, and no other answer, when nothing changed", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const problem = oddProblem(seed);
      const first = solveSimplex(problem);
      const again = solveSimplex(problem, { warm: first.warm });
      expect(again.pivots, `seed ${seed}`).toBe(0);
      expect(again.objectiveMs).toBeCloseTo(first.objectiveMs, 6);
    }
  });
});

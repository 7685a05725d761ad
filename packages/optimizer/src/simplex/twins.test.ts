import { loadNative } from "@guidevane/native";
import { describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import { createSimplex, type SimplexRun } from "./choose.ts";
import { loseLargest, noisyDemand, randomInstance } from "./instance.ts";
import { oddProblem } from "./odd-problem.fixture.ts";
import type { SimplexSolution } from "./solve.ts";

const load = loadNative();
const absent = load.binding === null ? ` (skipped: ${load.reason})` : "";
const ts = createSimplex("ts");
const native = createSimplex("auto");

/** Small problems, and what follows them, are in `truth.test.ts`. Solves by both, expects the same to the last bit, and returns it. */
function same(name: string, problem: Problem, options: SimplexRun = {}): SimplexSolution {
  const one = ts.solve(problem, options);
  const other = native.solve(problem, options);
  expect({ ...other, name }).toEqual({ ...one, name });
  return one;
}

describe.skipIf(load.binding === null)(`the two network simplexes${absent}`, () => {
  it.each([0.5, 0.8, 0.95, 0.99, 1.3])(
    "make the same pivots on a fleet at a utilisation of %s, from nothing and from the last tree",
    (utilisation) => {
      const problem = randomInstance({ cells: 60, engines: 120, seed: 7, utilisation });
      const { warm, pivots } = same("cold", problem);
      expect(pivots).toBeGreaterThan(200);
      same("noise", noisyDemand(problem, 0.05, 3), { warm });
      same("engine lost", loseLargest(problem), { warm });
    },
  );

  it("end at the same pivot limit with the same feasible flows", () => {
    const problem = randomInstance({ cells: 60, engines: 120, seed: 8 });
    for (const pivotLimit of [0, 1, 100]) {
      const { status } = same(`limit ${pivotLimit}`, problem, { pivotLimit });
      expect(status).toBe("capped");
    }
  });

  it("end at a cancel word that is set, with a feasible answer", () => {
    const problem = randomInstance({ cells: 60, engines: 120, seed: 9 });
    const cancel = new Uint32Array(new SharedArrayBuffer(4)).fill(1);
    for (const simplex of [ts, native]) {
      const solution = simplex.solve(problem, { cancel });
      expect(solution.status).toBe("capped");
      expect(solution.message).toContain("stopped");
      expect(solution.pivots).toBeLessThan(256);
      expect(solution.objectiveMs).toBeGreaterThan(solution.lowerBoundMs);
    }
  });

  it("refuse the same problems in the same words", () => {
    const problem = oddProblem(5);
    for (const bad of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      const { status, message } = same(`demand ${bad}`, {
        ...problem,
        demandWps: Float64Array.of(bad, ...problem.demandWps.slice(1)),
      });
      expect(status).not.toBe("solved");
      expect(message).toContain("demandWps[0]");
    }
  });
});

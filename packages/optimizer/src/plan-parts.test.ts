import { describe, expect, it } from "vitest";
import { joinSolved, planParts, solvePlanParts } from "./plan-parts.ts";
import type { PlanWarm } from "./plan-types.ts";
import type { Problem } from "./problem.ts";
import { manyModels, noisyDemand, randomInstance } from "./simplex/instance.ts";
import { solveSimplex } from "./simplex/solve.ts";
import type { Names } from "./solve-plan.ts";
import { verifySolution } from "./verify-solution.ts";

const NO_LIMIT = { deadlineMs: null };

function namesOf({ demandWps, curves }: Problem): Names {
  const engines = Array.from(curves.capacityWps, (_, engine) => `engine ${engine}`);
  return { cells: Array.from(demandWps, (_, cell) => `cell ${cell}`), engines };
}

function solveInParts(problem: Problem, warm: PlanWarm | null) {
  const names = namesOf(problem);
  const parts = planParts(problem, names, warm);
  return { parts, ...joinSolved(problem, names, parts, solvePlanParts(parts, "auto", NO_LIMIT)) };
}

describe("a plan in parts", () => {
  const problem = manyModels({ models: 13, clusters: 20, engines: 40, seed: 5 });

  it("costs what the whole does, proved, and goes on from its own last answer", () => {
    const { parts, solution, warm } = solveInParts(problem, null);
    expect(parts.map(({ names }) => names.cells.length)).toEqual(Array.from({ length: 13 }, () => 20));
    expect(verifySolution(problem, solution).faults).toEqual([]);
    const cost = solveSimplex(problem).objectiveMs;
    expect(Math.abs(solution.objectiveMs - cost)).toBeLessThan(1e-8 * cost);
    const next = noisyDemand(problem, 0.01, 2);
    const again = solveInParts(next, warm);
    expect(verifySolution(next, again.solution).faults).toEqual([]);
    expect(again.warm).toMatchObject({ cells: warm!.cells, engines: warm!.engines });
  });

  it("is the whole where the problem is small", () => {
    const small = manyModels({ models: 2, clusters: 3, engines: 4, seed: 1 });
    expect(planParts(small, namesOf(small), null)).toHaveLength(1);
    const joined = randomInstance({ cells: 150, engines: 400, seed: 1 });
    expect(planParts(joined, namesOf(joined), null)).toHaveLength(1);
  });

  it("has the flows of each part at hand when its time is spent", () => {
    const names = namesOf(problem);
    const parts = planParts(problem, names, null);
    const { solution } = joinSolved(problem, names, parts, solvePlanParts(parts, "ts", { deadlineMs: 0 }));
    expect(solution.status).toBe("capped");
    expect(solution.message).toMatch(/^part 1 of 13: stopped at the deadline after \d+ pivots/);
    expect(verifySolution(problem, solution).faults).toEqual([]);
    expect(solution.lowerBoundMs).toBeLessThan(solution.objectiveMs);
  });
});

import { seededRandom } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import { describe, expect, it } from "vitest";
import { splitGap } from "./bound.ts";
import { leastCostByHighs } from "./highs.fixture.ts";
import type { PlanBudget, PlanWarm, SolverWant } from "./plan-types.ts";
import { makeProblem, randomProblem } from "./problem.fixture.ts";
import type { Problem } from "./problem.ts";
import { type Names, solvePlan } from "./solve-plan.ts";

const NO_LIMIT: PlanBudget = { deadlineMs: null };
const SOLVERS: readonly SolverWant[] = loadNative().binding === null ? ["ts", "lp"] : ["native", "ts", "lp"];

function names(problem: Problem): Names {
  return {
    cells: Array.from(problem.demandWps, (_, cell) => `cell ${cell}`),
    engines: Array.from(problem.curves.capacityWps, (_, engine) => `engine ${engine}`),
  };
}

function solve(problem: Problem, want: SolverWant, warm: PlanWarm | null = null, budget = NO_LIMIT) {
  return solvePlan(problem, names(problem), warm, want, budget, () => performance.now());
}

/** A tick later: other demand, an engine lost perhaps, and moves priced from the weights solved for before. */
function later(problem: Problem, random: () => number): Problem {
  const { flowWps, shedWps } = solve(problem, "ts").solution;
  const demandWps = problem.demandWps.map((demand) => demand * (0.5 + random()));
  const referenceWps = new Float64Array(flowWps.length);
  for (const [cell, demand] of problem.demandWps.entries()) {
    const served = demand - shedWps[cell]!;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      referenceWps[arc] = served > 1e-9 ? (demandWps[cell]! * flowWps[arc]!) / served : 0;
  }
  const capacityWps = problem.curves.capacityWps.slice();
  if (random() < 0.3) capacityWps[Math.floor(random() * capacityWps.length)] = 0;
  const moveMs = new Float64Array(flowWps.length).fill(200 * random() ** 2);
  return { ...problem, demandWps, curves: { ...problem.curves, capacityWps }, churn: { referenceWps, moveMs } };
}

describe("the solvers of a plan", () => {
  it("agree with each other and with HiGHS on 100 random fleets, from idle to twice overloaded, at first and a tick later", {
    timeout: 60_000,
  }, () => {
    const random = seededRandom(2024);
    for (let run = 0; run < 100; run++) {
      const first = randomProblem(random, 1 + Math.floor(7 * random()), 1 + Math.floor(7 * random()), 2 * random());
      const problem = run % 2 === 0 ? first : later(first, random);
      const { costMs, errorMs } = leastCostByHighs(problem);
      const scale = Math.max(1, costMs);
      for (const want of SOLVERS) {
        const { solution } = solve(problem, want);
        const at = `run ${run}, ${want}`;
        expect(solution.status, at).toBe("solved");
        // The programme ends at its finest grid: of 3,000 such fleets one is left above 2e-5, and which one hangs on
        // rounding. What may be published is 1e-4.
        const looseness = want === "lp" ? 1e-4 : 1e-9;
        expect(solution.objectiveMs, at).toBeLessThanOrEqual(costMs + looseness * scale);
        expect(solution.objectiveMs, at).toBeGreaterThanOrEqual(costMs - errorMs - 1e-7 * scale);
        expect(solution.objectiveMs - solution.lowerBoundMs, at).toBeLessThanOrEqual(looseness * scale);
        // The parts of the gap come from other code than the solvers', and none may be negative.
        const { arcMs, shedMs, engineMs } = splitGap(problem, solution, solution.priceMs);
        const least = Math.min(...arcMs, ...shedMs, ...engineMs);
        expect(least, at).toBeGreaterThanOrEqual(-1e-9 * scale);
      }
    }
  });

  it.each(SOLVERS)("%s gives engines that nothing tells apart the same", (want) => {
    const curve = [
      [0, 0],
      [0.5, 50],
      [1, 250],
    ] as const;
    const problem = makeProblem({
      demand: [70, 90, 0],
      cost: [
        [10, 10, 40, 10],
        [30, 30, 20, 30],
        [5, 5, 5, 5],
      ],
      capacity: [60, 60, 60, 60],
      curves: [curve],
    });
    const { flowWps, loadWps, priceMs } = solve(problem, want).solution;
    for (const other of [1, 3]) {
      expect(loadWps[other]).toBe(loadWps[0]);
      expect(priceMs[other]).toBe(priceMs[0]);
      for (const cell of [0, 1, 2]) expect(flowWps[4 * cell + other]).toBe(flowWps[4 * cell]);
    }
    expect(loadWps[0]! * 3 + loadWps[2]!).toBeCloseTo(160, 9);
  });
});

describe("the ladder of a plan", () => {
  const random = seededRandom(7);
  const problem = randomProblem(random, 40, 60, 0.8);

  it("starts from what the plan before left, by names, and comes to the same answer in fewer pivots", () => {
    const cold = solve(problem, "ts");
    const warm = solve(problem, "ts", cold.warm, { deadlineMs: null, pivots: 0 });
    // No pivot is allowed, and none is needed.
    expect(warm.solution.status).toBe("solved");
    expect(warm.solution.objectiveMs).toBeCloseTo(cold.solution.objectiveMs, 6);
    const strange = solve(problem, "ts", { ...cold.warm!, cells: cold.warm!.cells.map((name) => `other ${name}`) });
    expect(strange.solution.objectiveMs).toBeCloseTo(cold.solution.objectiveMs, 4);
  });

  it("lets the linear programme stand in for a small fleet when the simplex may not pivot", () => {
    const small = randomProblem(seededRandom(5), 5, 6, 0.8);
    const { solver, solution } = solve(small, "ts", null, { deadlineMs: null, pivots: 0 });
    expect(solver).toBe("lp");
    expect(solution.status).toBe("solved");
  });

  it("says what is wrong with a problem and climbs no further", () => {
    const bad = { ...problem, demandWps: problem.demandWps.map((value, at) => (at === 3 ? Number.NaN : value)) };
    const { solution, solver } = solve(bad, "ts");
    expect(solver).toBe("ts");
    expect(solution).toMatchObject({ status: "not-finite", message: "demandWps[3] is NaN" });
  });

  it("ends at once, with what it has, when it is cancelled", () => {
    const cancel = new Uint32Array(new SharedArrayBuffer(4)).fill(1);
    const { solution } = solve(randomProblem(seededRandom(3), 80, 80, 0.9), "ts", null, { deadlineMs: null, cancel });
    expect(solution.status).toBe("capped");
    expect(solution.objectiveMs).toBeGreaterThan(solution.lowerBoundMs);
  });
});

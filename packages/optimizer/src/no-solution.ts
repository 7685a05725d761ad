import type { Problem, Solution, SolveStatus } from "./problem.ts";

/** The answer of a solve that has none: nothing flows, and the bound is the trivial one. */
export function noSolution(problem: Problem, status: SolveStatus, message: string): Solution {
  return {
    status,
    message,
    flowWps: new Float64Array(problem.arcEngine.length),
    shedWps: new Float64Array(problem.demandWps.length),
    loadWps: new Float64Array(problem.curves.capacityWps.length),
    priceMs: new Float64Array(problem.curves.capacityWps.length),
    objectiveMs: 0,
    lowerBoundMs: 0,
  };
}

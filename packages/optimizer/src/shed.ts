import type { Problem } from "./problem.ts";

/**
 * The price of shedding, ms per unit of work: p_k(f) = p_k + stepMs·⌊J·f⌋ where f = s/d is the part of the cell already
 * shed and J the number of steps; its integral P_k(s) = ∫₀ˢ p_k(u/d) du is what shedding s costs. The steps make
 * clusters share the pain.
 */

/** p_k(f). At f = 1 the price of the last step. */
export function shedPrice(problem: Problem, cell: number, part: number): number {
  const steps = problem.shedSteps;
  if (steps <= 0) return problem.shedMs[cell]!;
  // Parts arrive as j/J divided and multiplied again: without the nudge 0.15·20 would count as step 2.
  const step = Math.min(steps - 1, Math.floor(part * steps + 1e-9));
  return problem.shedMs[cell]! + problem.shedStepMs * step;
}

/** P_k(s), ms per second. */
export function shedCost(problem: Problem, cell: number, shedWps: number): number {
  const demand = problem.demandWps[cell]!;
  const base = problem.shedMs[cell]! * shedWps;
  if (problem.shedSteps <= 0 || problem.shedStepMs === 0 || !(demand > 0)) return base;
  const width = demand / problem.shedSteps;
  const whole = Math.min(problem.shedSteps - 1, Math.floor(shedWps / width));
  // Steps 0 … whole−1 are used up, each `width` wide; the rest is in step `whole`.
  return base + problem.shedStepMs * (width * ((whole * (whole - 1)) / 2) + whole * (shedWps - whole * width));
}

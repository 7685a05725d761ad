import { lowerBound, objective } from "./bound.ts";
import { checkProblem } from "./check-problem.ts";
import { type Found, foldFleet, type LpFleet } from "./lp-fleet.ts";
import { refineGrid, startGrid } from "./lp-grid.ts";
import { solvePass } from "./lp-pass.ts";
import { candidatePrices } from "./lp-price.ts";
import { noSolution } from "./no-solution.ts";
import type { Problem, Solution } from "./problem.ts";

export interface LpBudget {
  /** Wall time; no further pass is begun that would likely end after it. */
  readonly deadlineMs?: number | null;
  readonly nowMs?: () => number;
}

/** The grid's step is 1/8, 1/32, … 1/2048 of an engine's reach in the first five passes, and stays there. */
const MAX_PASSES = 7;
/** Relative gap at which another pass is not worth its time: 40 ns of a mean of 400 ms. */
const ENOUGH = 1e-7;
/** The same once the grid is at its finest. */
const ENOUGH_AT_LAST = 1e-5;
const FINE_PASSES = 5;
const TINY_MS = 1e-9;

/**
 * The problem as a linear programme. Each φ_e is replaced by chords between breakpoints b_i of its load,
 *
 *     φ_e(y) ≈ min Σ_i φ(b_i)·λ_i   subject to   Σ_i b_i·λ_i = y,   Σ_i λ_i ≤ 1,   λ ≥ 0
 *
 * (convexity makes neighbours the cheapest mix), and P_k likewise over the demand served. Kinks of φ are always
 * breakpoints; each pass puts a finer grid around the loads that the last one found, so the chords' error falls by 16 a
 * pass. The programme's own prices of the engines' rows give the lower bound. `solved` says that the passes were done,
 * and the gap how well. No state is kept: the same problem gives the same solution.
 */
export function solveLp(problem: Problem, budget: LpBudget = {}): Solution {
  const wrong = checkProblem(problem);
  if (wrong !== null) return noSolution(problem, wrong.status, wrong.message);
  const nowMs = budget.nowMs ?? (() => performance.now());
  const startMs = nowMs();
  const deadlineMs = budget.deadlineMs ?? Number.POSITIVE_INFINITY;
  const fleet = foldFleet(problem);
  let best: Solution | null = null;
  let grid = startGrid(fleet);
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const passStartMs = nowMs();
    const found = solvePass(fleet, grid);
    if (found === null) {
      if (best !== null) return best;
      return noSolution(problem, "invalid", "the linear programme lost its digits in its first pass");
    }
    best = better(best, solutionOf(fleet, found));
    const enough = pass + 1 < FINE_PASSES ? ENOUGH : ENOUGH_AT_LAST;
    if (best.objectiveMs - best.lowerBoundMs <= enough * Math.max(best.lowerBoundMs, TINY_MS)) return best;
    const endMs = nowMs();
    if (endMs - startMs + (endMs - passStartMs) > deadlineMs) return { ...best, status: "capped" };
    grid = refineGrid(fleet, grid, found);
  }
  return best!;
}

function solutionOf(fleet: LpFleet, found: Found): Solution {
  const bounds = candidatePrices(fleet, found).map((priceMs) => ({
    priceMs,
    lowerBoundMs: lowerBound(fleet.problem, priceMs).lowerBoundMs,
  }));
  const [own, moved] = [bounds[0]!, bounds[1]!];
  return {
    status: "solved",
    message: "",
    ...found.flows,
    objectiveMs: objective(fleet.problem, found.flows),
    ...(moved.lowerBoundMs > own.lowerBoundMs ? moved : own),
  };
}

/** The cheaper flows with the higher bound: each holds whichever pass it came from. */
function better(best: Solution | null, next: Solution): Solution {
  if (best === null) return next;
  const flows = next.objectiveMs <= best.objectiveMs ? next : best;
  const bound = next.lowerBoundMs >= best.lowerBoundMs ? next : best;
  return { ...flows, priceMs: bound.priceMs, lowerBoundMs: bound.lowerBoundMs };
}

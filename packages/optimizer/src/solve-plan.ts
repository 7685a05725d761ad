import { objective } from "./bound.ts";
import { shareEqually } from "./equal-engines.ts";
import type { PlanBudget, PlanWarm, SolverKind, SolverWant } from "./plan-types.ts";
import { lowestPrices } from "./price-ranges.ts";
import type { Problem, Solution } from "./problem.ts";
import { carryWarm } from "./simplex/carry-warm.ts";
import { createSimplex } from "./simplex/choose.ts";
import type { SimplexSolution } from "./simplex/solve.ts";
import type { Warm } from "./simplex/warm.ts";
import { solveLp } from "./solve-lp.ts";

/** What the ladder came to. `solution.status` is `solved` or `capped` where its flows may be published. */
export interface Solved {
  readonly solution: Solution;
  readonly solver: SolverKind;
  readonly degraded: string;
  readonly warm: PlanWarm | null;
}

/** Names of the problem's cells and engines, by number: what a warm start is known by from one problem to the next. */
export interface Names {
  readonly cells: readonly string[];
  readonly engines: readonly string[];
}

/** Relative gap at which no further rung is tried. Publishing at 1e-4 is the design's; the simplex ends at 1e-9. */
const ENOUGH = 1e-4;
/** At most this many arcs does the linear programme stand in when the simplex fails: it takes about a second there. */
const LP_ARCS = 2000;
/** LB ≤ F up to rounding: beyond it one of the two is wrong. */
const CROSSED = 1e-9;

/**
 * Solves by the rungs of a ladder, each only where the one before gave no sound answer with a small gap and time is left:
 * the simplex from the last tree, the simplex from nothing, and for small fleets the linear programme. The soundest
 * answer with the least gap is taken. Never throws on a problem.
 *
 * @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon
 */
export function solvePlan(
  problem: Problem,
  names: Names,
  warm: PlanWarm | null,
  want: SolverWant,
  budget: PlanBudget,
  nowMs: () => number,
): Solved {
  const startMs = nowMs();
  const leftMs = (): number =>
    budget.deadlineMs === null ? Number.POSITIVE_INFINITY : budget.deadlineMs - (nowMs() - startMs);
  const lp = (): Solved => {
    const deadlineMs = budget.deadlineMs === null ? null : leftMs();
    return { solution: solveLp(problem, { deadlineMs, nowMs }), solver: "lp", degraded: "", warm: null };
  };
  if (want === "lp") return lp();

  const simplex = createSimplex(want);
  const bySimplex = (from?: Warm): Solved => {
    const solution = simplex.solve(problem, {
      ...(budget.deadlineMs === null ? {} : { deadlineMs: Math.max(0, leftMs()) }),
      ...(budget.pivots === undefined ? {} : { pivotLimit: budget.pivots }),
      ...(budget.cancel === undefined ? {} : { cancel: budget.cancel }),
      ...(from === undefined ? {} : { warm: from }),
    });
    return {
      solution: settle(problem, solution),
      solver: simplex.kind,
      degraded: simplex.degraded ?? "",
      warm: hasOnlyNumbers(solution) ? { ...names, state: solution.warm } : null,
    };
  };
  const planted = warm === null ? undefined : plantWarm(warm, names);
  const rungs: (() => Solved)[] = [...(planted === undefined ? [] : [() => bySimplex(planted)]), () => bySimplex()];
  if (problem.arcEngine.length <= LP_ARCS) rungs.push(lp);
  let best: Solved | null = null;
  for (const rung of rungs) {
    if (best !== null && (leftMs() <= 0 || isCancelled(budget))) break;
    const tried = rung();
    if (best === null || gapOf(tried.solution) < gapOf(best.solution)) best = tried;
    // What is wrong with the problem itself is wrong on every rung.
    if (gapOf(best.solution) <= ENOUGH || best.solution.status === "invalid" || best.solution.status === "not-finite")
      break;
  }
  return best!;
}

function isCancelled({ cancel }: PlanBudget): boolean {
  return cancel !== undefined && Atomics.load(cancel, 0) !== 0;
}

/** The simplex's answer with equal engines sharing equally and the lowest prices, and what these cost and prove. */
function settle(problem: Problem, solution: SimplexSolution): Solution {
  if (solution.status !== "solved" && solution.status !== "capped") return solution;
  const shared = shareEqually<Solution>(problem, solution);
  const { priceMs, lowerBoundMs } = lowestPrices(problem, shared, shared.priceMs);
  return sound({
    ...shared,
    objectiveMs: shared === solution ? solution.objectiveMs : objective(problem, shared),
    priceMs,
    lowerBoundMs,
  });
}

/** Nothing that is not a number, and no bound above the cost, may be published. */
function sound(solution: Solution): Solution {
  if (!hasOnlyNumbers(solution))
    return { ...solution, status: "not-finite", message: "the solver's answer is not finite" };
  const { objectiveMs, lowerBoundMs } = solution;
  if (lowerBoundMs > objectiveMs + CROSSED * Math.max(1, Math.abs(objectiveMs)))
    return { ...solution, status: "invalid", message: `the bound ${lowerBoundMs} is above the cost ${objectiveMs}` };
  return solution;
}

function hasOnlyNumbers({ objectiveMs, lowerBoundMs, flowWps, priceMs }: Solution): boolean {
  if (!Number.isFinite(objectiveMs) || !Number.isFinite(lowerBoundMs)) return false;
  return flowWps.every(Number.isFinite) && priceMs.every(Number.isFinite);
}

function gapOf({ status, objectiveMs, lowerBoundMs }: Solution): number {
  if (status !== "solved" && status !== "capped") return Number.POSITIVE_INFINITY;
  return (objectiveMs - lowerBoundMs) / Math.max(lowerBoundMs, Number.MIN_VALUE);
}

/** The warm start by the present numbers. */
export function plantWarm(warm: PlanWarm, { cells, engines }: Names): Warm {
  if (isSame(warm.cells, cells) && isSame(warm.engines, engines)) return warm.state;
  const cellAt = new Map(warm.cells.map((name, cell) => [name, cell]));
  const engineAt = new Map(warm.engines.map((name, engine) => [name, engine]));
  return carryWarm(
    warm.state,
    Int32Array.from(cells, (name) => cellAt.get(name) ?? -1),
    Int32Array.from(engines, (name) => engineAt.get(name) ?? -1),
  );
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

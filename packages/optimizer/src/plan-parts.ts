import type { PlanBudget, PlanWarm, SolverWant } from "./plan-types.ts";
import type { Problem } from "./problem.ts";
import { type Component, components, joinSolutions, joinWarm, warmOf, whole } from "./simplex/components.ts";
import { type Names, plantWarm, type Solved, solvePlan } from "./solve-plan.ts";

/**
 * A part of a plan's problem that shares no engine with the others, with what its solve needs. Plain data: it crosses to
 * another thread, where parts are solved at the same time.
 */
export interface PlanPart extends Component {
  readonly names: Names;
  readonly warm: PlanWarm | null;
}

/** With fewer arcs than this the whole is solved sooner than its parts are taken apart and sent around. */
const WHOLE_ARCS = 10_000;

/** The parts of a problem, one where it is small or hangs together. `warm` is of the whole, by whatever numbers. */
export function planParts(problem: Problem, names: Names, warm: PlanWarm | null): PlanPart[] {
  const planted = warm === null ? null : plantWarm(warm, names);
  const parts = problem.arcEngine.length < WHOLE_ARCS ? [whole(problem)] : components(problem);
  if (parts.length === 1)
    return [{ ...parts[0]!, names, warm: planted === null ? null : { ...names, state: planted } }];
  return parts.map((part) => {
    const own = {
      cells: Array.from(part.cells, (cell) => names.cells[cell]!),
      engines: Array.from(part.engines, (engine) => names.engines[engine]!),
    };
    const state = planted === null ? null : warmOf(problem, part, planted);
    return { ...part, names: own, warm: state === null ? null : { ...own, state } };
  });
}

/**
 * Solves parts one after the other within one budget, of which each may spend what is left in proportion to its arcs:
 * a hard one at the start leaves the others theirs, and what an easy one leaves they may use.
 *
 * @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon
 */
export function solvePlanParts(
  parts: readonly PlanPart[],
  want: SolverWant,
  budget: PlanBudget,
  nowMs: () => number = () => performance.now(),
): Solved[] {
  const startMs = nowMs();
  let sizeLeft = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  return parts.map((part) => {
    const fraction = sizeOf(part) / sizeLeft;
    sizeLeft -= sizeOf(part);
    const { deadlineMs, pivots } = budget;
    const own: PlanBudget = {
      ...budget,
      deadlineMs: deadlineMs === null ? null : Math.max(0, deadlineMs - (nowMs() - startMs)) * fraction,
      ...(pivots === undefined ? {} : { pivots: Math.ceil(pivots * fraction) }),
    };
    return solvePlan(part.problem, part.names, part.warm, want, own, nowMs);
  });
}

/** What a part takes to solve, roughly. */
export function sizeOf({ problem }: PlanPart): number {
  return problem.arcEngine.length + problem.demandWps.length + 1;
}

/** The whole's answer from one of each part, in order. */
export function joinSolved(
  problem: Problem,
  names: Names,
  parts: readonly PlanPart[],
  solved: readonly Solved[],
): Solved {
  const first = solved[0]!;
  if (parts.length === 1) return first;
  const warms = solved.flatMap(({ warm }) => (warm === null ? [] : [warm.state]));
  return {
    solution: joinSolutions(
      problem,
      parts,
      solved.map(({ solution }) => solution),
    ),
    // Where one part needed another solver, that is the one to tell of.
    solver: solved.find(({ solver }) => solver !== first.solver)?.solver ?? first.solver,
    degraded: first.degraded,
    warm: warms.length === parts.length ? { ...names, state: joinWarm(problem, parts, warms) } : null,
  };
}

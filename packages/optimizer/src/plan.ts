import type { StoredPublication } from "@guidevane/core";
import { type CurveEvaluator, createCurveEvaluator } from "@guidevane/native";
import { type BuildOptions, buildProblem, type ProblemIndex } from "./build-problem.ts";
import { addChurn } from "./churn.ts";
import { type Gate, tryGate } from "./gate.ts";
import { pinProblem } from "./pin-problem.ts";
import { joinSolved, type PlanPart, planParts, solvePlanParts } from "./plan-parts.ts";
import { cellKey, type Plan, type PlanBudget, type PlanInputs, type PlanWarm, type SolverWant } from "./plan-types.ts";
import type { Problem, Solution } from "./problem.ts";
import { publish } from "./publish.ts";
import type { Names, Solved } from "./solve-plan.ts";

export interface PlanOptions extends BuildOptions {
  /** Default `auto`: the network simplex, native where the addon is. */
  readonly solver?: SolverWant;
  /** Evaluates φ; default: the addon where it is, else its twin. */
  readonly curves?: CurveEvaluator;
  /** Monotonic clock of the budget. */
  readonly nowMs?: () => number;
}

/** A plan whose problem is made and whose gate is open: its parts want solving, by any thread, in any order. */
export interface BegunPlan {
  readonly parts: readonly PlanPart[];
  /** @param solved one answer to each part, in order */
  finish(solved: readonly Solved[]): Plan;
}

/**
 * One plan: builds the problem, certifies the present weights on it, and where they are not good enough solves it, edits
 * the rings of the publication before, certifies. Pure but for the clock
 * of its budget: the same inputs and the same previous publication give the same rings, so inputs that stand still move
 * nothing. Never throws for an input: see `Plan.status`.
 *
 * @param warm what the plan before left (`Plan.warm`): the same answer, sooner
 * @throws GuidevaneError `native_unavailable` when `options.solver` is `native` and there is no addon
 */
export function plan(
  inputs: PlanInputs,
  previous: StoredPublication | null,
  warm: PlanWarm | null,
  budget: PlanBudget,
  options: PlanOptions = {},
): Plan {
  const begun = beginPlan(inputs, previous, warm, options);
  if ("status" in begun) return begun;
  return begun.finish(solvePlanParts(begun.parts, options.solver ?? "auto", budget, options.nowMs));
}

/**
 * `plan` up to its solve, and what comes after: models that share no engine are parts of the problem that can be solved
 * at the same time. A plan that needs no solve has ended.
 */
export function beginPlan(
  inputs: PlanInputs,
  previous: StoredPublication | null,
  warm: PlanWarm | null,
  options: PlanOptions = {},
): Plan | BegunPlan {
  const nowMs = options.nowMs ?? (() => performance.now());
  const startMs = nowMs();
  const ended = (
    { status, message }: Pick<Plan, "status" | "message">,
    publication: Plan["publication"],
    gate: Gate,
    solved: Pick<Solved, "solver" | "degraded" | "warm">,
  ): Plan => {
    const { solver, degraded } = solved;
    return { status, message, publication, gate, warm: solved.warm, solver, degraded, solveMs: nowMs() - startMs };
  };
  const unsolved = { solver: options.solver === "lp" ? "lp" : "ts", degraded: "", warm } as const;
  const built = buildProblem(inputs, options);
  if (!built.ok) return ended(built, null, { held: false, why: built.message, certificate: null }, unsolved);
  const { index } = built;
  const problem = addChurn(built.problem, index, previous, inputs.fleet.policy.churnMs);
  const names = namesOf(index);
  const pin = (each: Problem) => pinProblem(each, names, inputs.pins ?? []);
  const gate = tryGate(inputs, problem, index, previous, (each) => pin(each).problem);
  if (gate.held) return ended({ status: "held", message: "" }, null, gate, unsolved);
  const pinned = pin(problem);
  const parts = planParts(pinned.problem, pinned.names, warm);

  const finish = (each: readonly Solved[]): Plan => {
    const solved = pinned.unpin(joinSolved(pinned.problem, pinned.names, parts, each));
    const { solution } = solved;
    if (solution.status !== "solved" && solution.status !== "capped") return ended(solution, null, gate, solved);
    if (solution.status === "capped" && isNoBetter(solution, gate, index))
      return ended({ status: "held", message: solution.message }, null, gate, solved);
    const curves = options.curves ?? createCurveEvaluator("auto");
    const publication = { ...publish(inputs, problem, index, solution, previous, curves), why: gate.why };
    const unserved = index.leftOut.map(
      ({ cluster, requestClass }) => `no engine may serve ${requestClass} from ${cluster}`,
    );
    return ended({ status: solution.status, message: unserved.join("; ") }, publication, gate, solved);
  };
  return { parts, finish };
}

/** Out of time with flows that cost more than the present weights do: those are kept. */
function isNoBetter({ objectiveMs }: Solution, { certificate }: Gate, { cells }: ProblemIndex): boolean {
  if (certificate === null) return false;
  const requests = cells.reduce((sum, { demandRps }) => sum + demandRps, 0);
  return certificate.objectiveMs * requests <= objectiveMs;
}

function namesOf({ cells, engines }: ProblemIndex): Names {
  return {
    cells: cells.map(({ cluster, spec }) => cellKey(cluster.name, spec.name)),
    engines: engines.map(({ spec }) => spec.id),
  };
}

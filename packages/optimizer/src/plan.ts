import type { StoredPublication } from "@guidevane/core";
import { type CurveEvaluator, createCurveEvaluator } from "@guidevane/native";
import { type BuildOptions, buildProblem } from "./build-problem.ts";
import type { Plan, PlanBudget, PlanInputs } from "./plan-types.ts";
import type { SolveStatus } from "./problem.ts";
import { publish } from "./publish.ts";
import { solveLp } from "./solve-lp.ts";

export interface PlanOptions extends BuildOptions {
  /** Evaluates φ; default: the addon where it is, else its twin. */
  readonly curves?: CurveEvaluator;
  /** Monotonic clock of the budget. */
  readonly nowMs?: () => number;
}

/**
 * One plan: builds the problem, solves it, edits the rings of the publication before, certifies. Pure but for the clock
 * of its budget: the same inputs and the same previous publication give the same rings, so inputs that stand still move
 * nothing. Never throws for an input: see `Plan.status`.
 *
 * @param _warm state of the solve before: the linear programme keeps none
 */
export function plan(
  inputs: PlanInputs,
  previous: StoredPublication | null,
  _warm: null,
  budget: PlanBudget,
  options: PlanOptions = {},
): Plan {
  const nowMs = options.nowMs ?? (() => performance.now());
  const startMs = nowMs();
  const ended = (status: SolveStatus, message: string, publication: Plan["publication"]): Plan => ({
    status,
    message,
    publication,
    solver: "lp",
    solveMs: nowMs() - startMs,
  });
  const built = buildProblem(inputs, options);
  if (!built.ok) return ended(built.status, built.message, null);
  const { problem, index } = built;
  const solution = solveLp(problem, { deadlineMs: budget.deadlineMs, nowMs });
  if (solution.status !== "solved" && solution.status !== "capped")
    return ended(solution.status, solution.message, null);
  const curves = options.curves ?? createCurveEvaluator("auto");
  const publication = publish(inputs, problem, index, solution, previous, curves);
  const unserved = index.leftOut.map(
    ({ cluster, requestClass }) => `no engine may serve ${requestClass} from ${cluster}`,
  );
  return ended(solution.status, unserved.join("; "), publication);
}

export { type Flows, type GapSplit, type LowerBound, lowerBound, objective, splitGap } from "./bound.ts";
export {
  type BuildOptions,
  type BuiltProblem,
  buildProblem,
  type CellFacts,
  type EngineFacts,
  FLOOR_RPS,
  type LeftOut,
  type ProblemIndex,
} from "./build-problem.ts";
export { type PlanOptions, plan } from "./plan.ts";
export { cellKey, type LiveEngine, type Plan, type PlanBudget, type PlanInputs } from "./plan-types.ts";
export type { Problem, Solution, SolveStatus } from "./problem.ts";
export { type LpBudget, solveLp } from "./solve-lp.ts";
export { loadProblem, type StoredProblem, storeProblem } from "./stored-problem.ts";

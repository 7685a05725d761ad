/** The optimizer: the fleet's problem, its solution with a bound, and what that says for every cluster. */
export { type Flows, type GapSplit, type LowerBound, lowerBound, objective, splitGap } from "./bound.ts";
export {
  type BuildOptions,
  type BuiltProblem,
  buildProblem,
  type CellFacts,
  type EngineFacts,
  type LeftOut,
  type ProblemIndex,
} from "./build-problem.ts";
export { type Diff, diff, type ExplainedMove } from "./diff.ts";
export { INPUT_KINDS, type InputKind } from "./diff-side.ts";
export { type Explanation, explain } from "./explain.ts";
export type { Addends, EngineExplanation, Range } from "./explain-engine.ts";
export { BINDING, type Binding } from "./explain-words.ts";
export type { Gate } from "./gate.ts";
export { keysMoved } from "./keys-moved.ts";
export { meanLatency, type NearestOnly, nearestOnly, type OverCapacity } from "./nearest.ts";
export { type BegunPlan, beginPlan, type PlanOptions, plan } from "./plan.ts";
export { type PlanPart, planParts, sizeOf, solvePlanParts } from "./plan-parts.ts";
export {
  cellKey,
  type LiveEngine,
  type Plan,
  type PlanBudget,
  type PlanInputs,
  type PlanStatus,
  type PlanWarm,
  type SolverKind,
  type SolverWant,
} from "./plan-types.ts";
export type { Problem, Solution, SolveStatus } from "./problem.ts";
export {
  PROBLEM_FORMAT,
  type ProblemFile,
  parseProblemFile,
  problemFileJsonSchema,
  writeProblemFile,
} from "./problem-file.ts";
export { shiftPrices } from "./shift-prices.ts";
export { showExplanation } from "./show-explanation.ts";
export { carryWarm } from "./simplex/carry-warm.ts";
export { createSimplex, type Simplex, type SimplexRun } from "./simplex/choose.ts";
export { type Component, components, joinComponents, solveByComponents, warmOf } from "./simplex/components.ts";
export { type InstanceShape, loseLargest, manyModels, noisyDemand, randomInstance } from "./simplex/instance.ts";
export { type SimplexOptions, type SimplexSolution, solveSimplex } from "./simplex/solve.ts";
export type { Warm } from "./simplex/warm.ts";
export { readWarm, SOLUTION_FORMAT, type SolutionFile, type SolvedBy, writeSolutionFile } from "./solution-file.ts";
export { type LpBudget, solveLp } from "./solve-lp.ts";
export type { Names, Solved } from "./solve-plan.ts";
export { loadProblem, type StoredProblem, storeProblem } from "./stored-problem.ts";
export { verifyCertificate } from "./verify.ts";
export { type SolutionCheck, verifySolution } from "./verify-solution.ts";
export {
  applyChange,
  type Change,
  type EngineMove,
  type FleetFigures,
  type Move,
  type WeightMove,
  type WhatIf,
  whatIf,
} from "./what-if.ts";

/** The control plane: solves for weights, publishes snapshots, answers the admin API. */
export type { OperatorAnswer } from "./admin-operator.ts";
export type { Analysis, Analyst, CellName } from "./analyst.ts";
export type { ClusterFigures, PlanFigures, TrafficFigures } from "./cluster-figures.ts";
export type { EngineAnswer } from "./engine-answers.ts";
export type { ControlLogger } from "./log.ts";
export type { SolveOutcome, Solver, VerifyOutcome } from "./solver-pool.ts";
export { createSolverThreads, type SolverThreads } from "./solver-threads.ts";
export { type ControlOptions, type RunningControl, startControl } from "./start-control.ts";

/** The control plane: solves for weights, publishes snapshots, answers the admin API. */
export type { EngineAnswer } from "./engine-answers.ts";
export type { ControlLogger } from "./log.ts";
export type { SolveOutcome, Solver, VerifyOutcome } from "./solver-pool.ts";
export { type ControlOptions, type RunningControl, startControl } from "./start-control.ts";

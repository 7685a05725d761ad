/** The control plane: solves for weights, publishes snapshots, answers the admin API. */
export type { Verify } from "./control.ts";
export type { EngineAnswer } from "./engine-answers.ts";
export type { ControlLogger } from "./log.ts";
export type { SolveOutcome, Solver } from "./solver-pool.ts";
export { type ControlOptions, type RunningControl, startControl } from "./start-control.ts";

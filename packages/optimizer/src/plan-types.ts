import type { AdminState, Fleet, Pin, Publication } from "@guidevane/core";
import type { Gate } from "./gate.ts";
import type { SolveStatus } from "./problem.ts";
import type { Warm } from "./simplex/warm.ts";

/** What the tick knows, dated by `wallMs`. Plain data: it crosses to a worker thread. */
export interface PlanInputs {
  readonly wallMs: number;
  readonly fleet: Fleet;
  /** Offered requests/s by `cellKey(cluster, class)`; a cell left out has the floor. */
  readonly demandRps: ReadonlyMap<string, number>;
  /** One deviation by chance of `demandRps`, as it was measured, by the same keys; a cell left out is known exactly. */
  readonly demandDeviationRps?: ReadonlyMap<string, number>;
  /** By engine id; an engine left out is as the fleet file says and healthy. */
  readonly engines: ReadonlyMap<string, LiveEngine>;
  /** Live gateways by cluster. */
  readonly gateways: ReadonlyMap<string, number>;
  /** Weights by an operator's word, those in force. Left out: none. */
  readonly pins?: readonly Pin[];
}

export interface LiveEngine {
  readonly readyReplicas: number;
  /** 0..1: the failing part, from connect failures, 5xx and broken streams; never from latency. */
  readonly severity: number;
  readonly adminState: AdminState;
}

export interface PlanBudget {
  /** Wall time that the solve may take; null = none (the lab). */
  readonly deadlineMs: number | null;
  /** Pivots that each try may make: a budget that every machine spends alike. Default 60 per cell and engine. */
  readonly pivots?: number;
  /** One word over a SharedArrayBuffer: another thread sets it to other than 0 to end the solve. */
  readonly cancel?: Uint32Array;
}

/** Which solver a plan asks for: `auto` is the network simplex, native where the addon is, else its TypeScript twin. */
export type SolverWant = "auto" | SolverKind;
export type SolverKind = "native" | "ts" | "lp";

/** What one plan leaves for the next. Plain typed arrays: it crosses between threads, and may be transferred. */
export interface PlanWarm {
  /** `cellKey` of each cell and id of each engine, by their numbers in `state`. */
  readonly cells: readonly string[];
  readonly engines: readonly string[];
  readonly state: Warm;
}

/** `held`: the present weights are as good as need be; nothing was published and nothing moves. */
export type PlanStatus = SolveStatus | "held";

export interface Plan {
  readonly status: PlanStatus;
  /** Says what was wrong, with its value; empty when solved. */
  readonly message: string;
  /** Null unless `status` is `solved` or `capped`. Its stamps are 0 until a store puts it. */
  readonly publication: Publication | null;
  /** The present weights on the new inputs, before any solve. */
  readonly gate: Gate;
  /** For the next plan; null where there is nothing to go on from. */
  readonly warm: PlanWarm | null;
  readonly solver: SolverKind;
  /** Why `auto` fell back to TypeScript, for one line in the log; empty where it did not. */
  readonly degraded: string;
  readonly solveMs: number;
}

export function cellKey(cluster: string, requestClass: string): string {
  return `${cluster}\n${requestClass}`;
}

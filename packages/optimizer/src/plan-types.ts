import type { AdminState, Fleet, Publication } from "@guidevane/core";
import type { SolveStatus } from "./problem.ts";

/** What the tick knows, dated by `wallMs`. Plain data: it crosses to a worker thread. */
export interface PlanInputs {
  readonly wallMs: number;
  readonly fleet: Fleet;
  /** Offered requests/s by `cellKey(cluster, class)`; a cell left out has the floor. */
  readonly demandRps: ReadonlyMap<string, number>;
  /** By engine id; an engine left out is as the fleet file says and healthy. */
  readonly engines: ReadonlyMap<string, LiveEngine>;
  /** Live gateways by cluster. */
  readonly gateways: ReadonlyMap<string, number>;
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
}

export interface Plan {
  readonly status: SolveStatus;
  /** Says what was wrong, with its value; empty when solved. */
  readonly message: string;
  /** Null unless `status` is `solved` or `capped`. Its stamps are 0 until a store puts it. */
  readonly publication: Publication | null;
  readonly solver: "lp" | "native" | "ts";
  readonly solveMs: number;
}

export function cellKey(cluster: string, requestClass: string): string {
  return `${cluster}\n${requestClass}`;
}

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Outcome } from "@guidevane/core";
import type { AttemptEnd, Next } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import type { EngineClient, EngineFailure, EngineRequest } from "./engine-client.ts";

export interface AttemptTimers {
  readonly headMs: number;
  readonly firstTokenMs: number;
  readonly idleMs: number;
  /** 0 = no limit. */
  readonly totalMs: number;
}

export interface AttemptOptions {
  readonly client: EngineClient;
  readonly request: EngineRequest;
  readonly response: ServerResponse;
  /** The client's connection: when it closes, the client has left. A response waiting in a pipeline is not told so itself. */
  readonly socket: Socket;
  readonly clock: Clock;
  readonly timers: AttemptTimers;
  /** The client asked for a stream. */
  readonly stream: boolean;
  /** The fleet says that this engine serves the model asked for. */
  readonly servesModel: boolean;
  /** The gateway's own headers on the answer; names and values in turn. */
  readonly answerHeaders: readonly string[];
  /** Whether another attempt follows one that ends so. Asked at most once, and only before anything went to the client. */
  decide(end: AttemptEnd): Next;
  /** The answer's head goes to the client: no other attempt will follow, and the request's body may be let go. */
  onCommit(): void;
}

/** An answer that was kept back because another attempt follows; the client gets it if that one fails too. */
export interface HeldAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface AttemptReport {
  readonly outcome: Outcome;
  readonly status: number | null;
  /** null = the connection was there already, or there was none. */
  readonly connectMs: number | null;
  readonly firstByteMs: number | null;
  readonly endMs: number;
  readonly bytes: number;
  readonly failure: EngineFailure | null;
}

export type AttemptResult =
  /** The client has its answer, or has left. */
  | { readonly kind: "over"; readonly report: AttemptReport }
  | { readonly kind: "retry"; readonly next: Next; readonly held: HeldAnswer | null; readonly report: AttemptReport }
  /** Nothing went to the client and no attempt follows. */
  | { readonly kind: "failed"; readonly error: ApiError; readonly report: AttemptReport };

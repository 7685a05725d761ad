import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Outcome } from "@guidevane/core";
import type { AttemptEnd, Next } from "@guidevane/guard";
import type { AnswerFacts } from "./answer-facts.ts";
import type { ApiError } from "./api-error.ts";
import type { EngineHead } from "./client-answer.ts";
import type { EngineClient, EngineFailure, EngineRequest } from "./engine-client.ts";

export interface AttemptTimers {
  readonly headMs: number;
  readonly holdHeadMs: number;
  readonly firstTokenMs: number;
  readonly idleMs: number;
  /** 0 = no limit. */
  readonly totalMs: number;
}

/** What an attempt works with, and whom it asks and tells. */
export interface AttemptOptions {
  readonly client: EngineClient;
  /** Built when it is sent, and not kept: its body may be large. */
  engineRequest(): EngineRequest;
  readonly response: ServerResponse;
  /** The client's connection. */
  readonly socket: Socket;
  /** Who is told when the client leaves; null = nobody any more. */
  whenGone(task: (() => void) | null): void;
  readonly clock: Clock;
  readonly timers: AttemptTimers;
  /** When the client no longer waits, by the clock; null = it has not said. */
  readonly deadlineAtMs: number | null;
  /** The client asked for a stream. */
  readonly stream: boolean;
  /** How many choices it asked for, at least. */
  readonly choices: number;
  /** The fleet says that this engine serves the model asked for. */
  readonly servesModel: boolean;
  /** The gateway's own headers on the answer; names and values in turn. */
  readonly answerHeaders: readonly string[];
  /** An error as one event of the stream that the client is getting. */
  breakOff(error: ApiError): string;
  /** Whether another attempt follows one that ends so. Asked at most once, and only before anything went to the client. */
  decide(end: AttemptEnd): Next;
  /** The answer's head goes to the client: no other attempt will follow, and the request's body may be let go. */
  onCommit(): void;
  /** The first content of a stream has come, so long after the attempt began. */
  onFirstToken(ttftMs: number): void;
  /** The answer, one of the Responses API, has told its id; before the client hears of it. */
  onResponseId(id: string): void;
  /** Reading beside the answer failed on an error of its own; the answer goes on. */
  onObserverFailure(error: unknown): void;
  /** It is over. Told once, last. */
  onOver(result: AttemptResult): void;
}

/** What the process learns of an attempt that is over: what engines are judged by. */
export interface AttemptVerdict
  extends Pick<AttemptReport, "outcome" | "status" | "connectMs" | "failure" | "retryAfterMs"> {
  readonly answer: Pick<AnswerFacts, "tbotMs"> | null;
}

/** An answer that was kept back because another attempt follows; the client gets it if that one fails too. */
export interface KeptAnswer extends EngineHead {
  readonly body: Buffer;
}

/** How one attempt went. Plain data. Times are counted from its beginning. */
export interface AttemptReport {
  readonly outcome: Outcome;
  readonly status: number | null;
  /** null = the connection was there already, or there was none. */
  readonly connectMs: number | null;
  readonly headMs: number | null;
  /** The first content of a stream; the first bytes of an answer that is none or can't be read. */
  readonly firstTokenMs: number | null;
  readonly endMs: number;
  /** Of the body, as they came. */
  readonly bytes: number;
  readonly failure: EngineFailure | null;
  /** How long the engine asked to be left alone; null = it did not. */
  readonly retryAfterMs: number | null;
  /** What the answer said of itself; null = there was none. */
  readonly answer: AnswerFacts | null;
}

export type AttemptResult =
  /** The client has its answer, or has left. */
  | { readonly kind: "over"; readonly report: AttemptReport }
  | { readonly kind: "retry"; readonly next: Next; readonly kept: KeptAnswer | null; readonly report: AttemptReport }
  /** Nothing went to the client and no attempt follows. */
  | { readonly kind: "failed"; readonly error: ApiError; readonly report: AttemptReport };

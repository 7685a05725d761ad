import type { IncomingMessage, ServerResponse } from "node:http";
import { KEY_SOURCES, OUT, REASONS } from "@guidevane/selector";
import type { Accepted } from "./accept.ts";
import type { AnswerManner } from "./api-error.ts";
import type { AttemptReport } from "./attempt-result.ts";
import type { BodyShare } from "./body-memory.ts";
import type { Client } from "./client-keys.ts";
import type { DecisionDraft } from "./decision-draft.ts";
import type { EngineRequest } from "./engine-client.ts";
import type { Engine } from "./engines.ts";
import type { FrontRequest } from "./front-request.ts";
import type { RequestHead } from "./head-facts.ts";
import { headersToEngine, queryToEngine } from "./headers.ts";
import type { Routing } from "./routing.ts";

/** One request from its head to its outcome. */
export interface Exchange {
  readonly request: FrontRequest;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly arrivedMs: number;
  readonly accepted: Extract<Accepted, { kind: "inference" }>;
  /** How the gateway's own answers are said to this client. */
  readonly manner: AnswerManner;
  /** Null where clients need no key. */
  readonly client: Client | null;
  readonly head: RequestHead;
  /** The body's content-encoding. */
  readonly encoding: string | undefined;
  /** From when its body is there, the snapshot that it is routed by. */
  routing: Routing;
  /** It uses `routing`, and is to say when it does no more. */
  isRouted: boolean;
  /** Class that it was let in for, and holds a place of; null = none. */
  admittedAs: string | null;
  /** What its body holds of the thread's memory; let go with the body. */
  readonly share: BodyShare;
  /** Lower-case names of the client's headers that go to no engine. */
  withheld: readonly string[];
  /** As the client sent it, but for an alias; let go when the answer's head is sent. */
  body: Buffer;
  /** As JSON text; the same bytes where they were not compressed. */
  text: Buffer;
  /** When the client waits no longer, by the clock; null = it has not said. */
  readonly deadlineAtMs: number | null;
  /** Undefined where the request matched none. */
  className: string | undefined;
  /** Those that are over, in order. */
  readonly attempts: AttemptRecord[];
  /** What is noted for those who ask later. */
  readonly decision: DecisionDraft;
}

/** One attempt, for those who ask later. Plain data. */
export interface AttemptRecord extends AttemptReport {
  readonly engine: string;
  /** Why this engine. */
  readonly reason: string;
}

/** Whether the client's library says that it tries again what it has asked before. */
export function isClientRetry(request: IncomingMessage): boolean {
  return Number(request.headers["x-stainless-retry-count"]) > 0;
}

/** What the selector chose, copied from words that the next request overwrites. */
export interface Choice {
  readonly slot: number;
  /** Index of the class in the snapshot's table. */
  readonly requestClass: number;
  readonly reason: string;
  readonly keySource: string;
}

export function readChoice(out: Uint32Array): Choice {
  return {
    slot: out[OUT.engine]!,
    requestClass: out[OUT.requestClass]!,
    reason: REASONS[out[OUT.reason]!]!,
    keySource: KEY_SOURCES[out[OUT.keySource]!]!,
  };
}

/** The request as one engine gets it. */
export function engineRequest(exchange: Exchange, engine: Engine, fresh: boolean): EngineRequest {
  const { request, requestId, accepted, body, client, withheld } = exchange;
  const { passthrough, headers } = engine.credentials;
  return {
    method: "POST",
    path: `${engine.pathPrefix}${accepted.path}${queryToEngine(accepted.query, passthrough && client?.keyInQuery !== true)}`,
    headers: headersToEngine(request.rawHeaders, {
      passthrough,
      withheld,
      added: ["x-request-id", requestId, ...headers],
    }),
    body,
    fresh,
  };
}

const NONE: readonly string[] = [];

/** Whether the fleet gives the engine the model asked for: then its 404 is a fault, not the client's mistake. */
export function servesModel(exchange: Exchange, engine: Engine): boolean {
  const { className, routing } = exchange;
  const model = className === undefined ? undefined : routing.snapshot.classes[className]?.model;
  return model !== undefined && engine.spec.models.includes(model);
}

/** The gateway's headers on an engine's answer, names and values in turn. */
export function answerHeaders(exchange: Exchange, engine: string, choice: Choice): string[] {
  const { requestId, manner } = exchange;
  const headers = choiceHeaders(exchange, engine, choice, ["x-request-id", requestId]);
  for (const each of manner.headers ?? NONE) headers.push(each);
  return headers;
}

/** Why this engine; names and values in turn, put after `headers`. */
export function choiceHeaders(
  { routing }: Exchange,
  engine: string,
  { reason, keySource }: Choice,
  headers: string[] = [],
): string[] {
  headers.push("x-guidevane-engine", engine, "x-guidevane-snapshot", String(routing.snapshot.version));
  headers.push("x-guidevane-reason", reason, "x-guidevane-key-source", keySource);
  return headers;
}

/** How an answer of the gateway's own is said. @param choice `choiceHeaders` of the engine that was asked last */
export function ownAnswer({ manner, routing }: Exchange, choice?: readonly string[]): AnswerManner {
  const about = choice ?? ["x-guidevane-snapshot", String(routing.snapshot.version)];
  return { ...manner, headers: [...about, ...(manner.headers ?? NONE)] };
}

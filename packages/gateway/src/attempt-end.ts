import type { Clock, Outcome } from "@guidevane/core";
import { type AttemptEnd, outcomeOfStatus } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import type { EngineHead } from "./client-answer.ts";
import type { EngineFailure } from "./engine-client.ts";
import { headerOf } from "./headers.ts";
import type { AnswerObserver } from "./observer.ts";

/** What a failure means to the rules of retrying. */
export function endOf(failure: EngineFailure): AttemptEnd {
  switch (failure.kind) {
    case "refused":
    case "unreachable":
    case "tls":
      return { kind: "connect" };
    case "stale-connection":
      return { kind: "stale-connection" };
    case "closed":
      return { kind: "closed" };
    case "malformed":
    case "no-descriptors":
      return { kind: "malformed" };
  }
}

/**
 * What an error event is taken for that comes in an answer's place: its status where that is a refusal, else a 502. A
 * status line would say more of whose fault it is; an engine that puts an error into a 200 has most likely lost its core.
 */
export function statusOfErrorEvent(status: number): number {
  return status === 503 || (status >= 400 && status < 500 && status !== 408) ? status : 502;
}

/** How an answer that has ended went, by its status and by what it said of itself; null = there was none. */
export function outcomeOfAnswer(
  head: EngineHead | null,
  observer: Pick<AnswerObserver, "kind" | "error" | "whole"> | null,
  servesModel: boolean,
): Outcome {
  if (head === null || observer === null) return "fault";
  const { status } = head;
  const { kind, error, whole } = observer;
  if (status !== 200 || kind !== "events") return outcomeOfStatus(status, servesModel);
  if (error !== null) return outcomeOfStatus(statusOfErrorEvent(error.status), servesModel);
  return whole ? "success" : "fault";
}

/** Whether nothing but the closing of its connection can end an answer with this head. */
export function endsByClose({ status, headers }: EngineHead): boolean {
  if (status === 204 || status === 304) return false;
  return (headerOf(headers, "content-length") ?? headerOf(headers, "transfer-encoding")) === undefined;
}

/** For a client whose request had no answer at all. */
export const BROKE_OFF: ApiError = {
  status: 502,
  code: "engine_unreachable",
  message: "the engine could not be reached or broke off",
};

/** The client waits no longer. */
export const DEADLINE: ApiError = {
  status: 504,
  code: "engine_timeout",
  message: "there was no whole answer by the request's deadline",
};

/** No engine's fault, and no other engine would help. */
export const NO_DESCRIPTORS: ApiError = {
  status: 503,
  code: "gateway_overloaded",
  message: "the gateway can open no more connections; try again later",
  headers: { "retry-after": "1" },
};

/**
 * How long an engine asks to be left alone, from its answer's headers: Retry-After in seconds or as a date (RFC 9110
 * §10.2.3), or the milliseconds that OpenAI's servers send beside it. Null where there is neither, or nonsense.
 */
export function retryAfterMsOf(headers: readonly string[], clock: Pick<Clock, "wallMs">): number | null {
  const exact = headerOf(headers, "retry-after-ms");
  if (exact !== undefined && /^\d{1,12}(\.\d+)?$/.test(exact)) return Number(exact);
  const value = headerOf(headers, "retry-after")?.trim();
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const atMs = /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - clock.wallMs());
}

/** A status text without the characters that the parser lets in and that must not leave again (RFC 9112 §4). */
export function printable(statusText: string): string {
  return statusText.replace(UNPRINTABLE, "");
}

const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/g;

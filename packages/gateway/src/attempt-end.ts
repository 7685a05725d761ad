import type { Clock } from "@guidevane/core";
import type { AttemptEnd } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import type { EngineFailure } from "./engine-client.ts";
import { headerOf } from "./headers.ts";

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

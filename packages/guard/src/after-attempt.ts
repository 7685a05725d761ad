import type { Outcome } from "@guidevane/core";

/** How an attempt at an engine ended before anything of it went to the client. */
export type AttemptEnd =
  /** No connection: refused, unreachable, timed out, or TLS failed. */
  | { readonly kind: "connect" }
  /** A connection that had served before died without a byte: the engine closed it while the request was under way. */
  | { readonly kind: "stale-connection" }
  /** The connection was reset or closed before the answer's head. */
  | { readonly kind: "closed" }
  /** What came was not HTTP. */
  | { readonly kind: "malformed" }
  /** One of the gateway's own timers ran out after the request was sent. */
  | { readonly kind: "timer" }
  /** An answer's head. */
  | {
      readonly kind: "answer";
      readonly status: number;
      /** The fleet says that the engine serves the model asked for. */
      readonly servesModel: boolean;
      /** The engine's Retry-After; null = none. */
      readonly retryAfterMs: number | null;
    };

export interface Circumstances {
  /** Attempts made, the one that just ended included; retries on a fresh connection are not counted. */
  readonly attempts: number;
  /** Of those before the one that just ended: how many no engine saw, since no connection came about. Default 0. */
  readonly unreached?: number;
  readonly attemptsMax: number;
  /** A fresh connection was already tried for this request. */
  readonly freshTried: boolean;
  /** The request leaves something behind at the engine (`store: true`): it may have taken effect. */
  readonly leavesTrace: boolean;
}

export type Next =
  | { readonly retry: false }
  /** The same engine again on a fresh connection; not an attempt of its own. */
  | { readonly retry: "fresh" }
  /**
   * Another engine at once. Where there is no other: the same one after `aloneMs`, or not at all where that is null. `free`:
   * no engine had the request yet, so the retry adds no work to the fleet and costs no budget.
   */
  | { readonly retry: "other"; readonly aloneMs: number | null; readonly free: boolean };

const NO: Next = { retry: false };

/** With no other engine to go to, a pause spreads the retries of many clients. */
const ALONE_MIN_MS = 50;
const ALONE_SPREAD_MS = 200;

/**
 * Where a region dies, all its engines refuse before the first refusal is known everywhere. So up to so many attempts that
 * reached no engine count for nothing; more could make a client wait for one connect timer after the other.
 */
const UNREACHED_MAX = 3;

/** Waiting longer than this for the same engine is the client's decision. */
const RETRY_AFTER_WAITED_MS = 1000;

/**
 * Whether a failed attempt is followed by another one, and where. Nothing may have been sent to the client yet.
 *
 * @param draw in [0, 1): spreads the pause before the same engine is asked again
 */
export function afterAttempt(end: AttemptEnd, seen: Circumstances, draw: number): Next {
  if (end.kind === "stale-connection" && !seen.freshTried) return { retry: "fresh" };
  if (!worthRetrying(end, seen) || !mayRetry(end, seen)) return NO;
  const retryAfterMs = end.kind === "answer" ? end.retryAfterMs : null;
  const free = end.kind === "connect";
  if (retryAfterMs !== null && retryAfterMs >= RETRY_AFTER_WAITED_MS) return { retry: "other", aloneMs: null, free };
  return { retry: "other", aloneMs: Math.max(retryAfterMs ?? 0, ALONE_MIN_MS + ALONE_SPREAD_MS * draw), free };
}

/** Who allows one attempt wants no retries at all. */
function mayRetry({ kind }: AttemptEnd, { attempts, unreached = 0, attemptsMax }: Circumstances): boolean {
  const free = Math.min(unreached + (kind === "connect" ? 1 : 0), UNREACHED_MAX);
  return attemptsMax > 1 && attempts - free < attemptsMax;
}

function worthRetrying(end: AttemptEnd, seen: Circumstances): boolean {
  switch (end.kind) {
    case "connect":
      return true;
    case "stale-connection":
    case "closed":
      // Inference has no side effects, so what may have begun may begin again; what is stored would be stored twice.
      return !seen.leavesTrace;
    case "malformed":
    case "timer":
      return false;
    case "answer":
      switch (end.status) {
        case 429:
        case 502:
        case 503:
        case 504:
          return true;
        case 404:
          return end.servesModel;
        default:
          return false;
      }
  }
}

/** Outcome of an attempt whose answer's head came, by its status. */
export function outcomeOfStatus(status: number, servesModel: boolean): Outcome {
  if (status === 429 || status === 503) return "saturated";
  if (status >= 500 || status === 408) return "fault";
  if (status >= 400) return status === 404 && servesModel ? "fault" : "client-error";
  // Inference is not somewhere else: a redirect is no answer to it.
  return status >= 300 ? "fault" : "success";
}

import type { AttemptEnd } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import type { EngineFailure } from "./engine-client.ts";

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
      return { kind: "malformed" };
  }
}

/** For a client whose request had no answer at all. */
export const BROKE_OFF: ApiError = {
  status: 502,
  code: "engine_unreachable",
  message: "the engine could not be reached or broke off",
};

/** Retry-After in seconds as ms; a date or nonsense is taken as no header at all. */
export function retryAfterMsOf(value: string | undefined): number | null {
  if (value === undefined || !/^\s*\d{1,9}\s*$/.test(value)) return null;
  return Number(value) * 1000;
}

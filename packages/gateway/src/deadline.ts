import type { IncomingHttpHeaders } from "node:http";
import { type ClusterSnapshot, valueAt } from "@guidevane/core";
import type { ApiError } from "./api-error.ts";

/**
 * How long a client will wait, from its request's headers: `x-guidevane-deadline-ms`, else `x-stainless-timeout`, the
 * seconds that OpenAI's and Anthropic's libraries send. Null where it does not say. What a library sends and nobody wrote
 * is passed over when it is no number; what somebody wrote is refused.
 */
export function readDeadline(headers: IncomingHttpHeaders): number | null | ApiError {
  const own = headers["x-guidevane-deadline-ms"];
  if (own !== undefined) {
    const deadlineMs = /^\d{1,10}$/.test(String(own).trim()) ? Number(own) : Number.NaN;
    if (deadlineMs > 0) return deadlineMs;
    return {
      status: 400,
      code: "invalid_header",
      message: `x-guidevane-deadline-ms must be whole milliseconds above 0, not ${JSON.stringify(own).slice(0, SHOWN)}`,
      param: "x-guidevane-deadline-ms",
      close: true,
    };
  }
  const timeoutS = Number(headers["x-stainless-timeout"] ?? Number.NaN);
  return timeoutS > 0 && Number.isFinite(timeoutS) ? timeoutS * 1000 : null;
}

const SHOWN = 40;

/**
 * When the first token of a request of this class may be expected from an engine, ms from now: what its profile says at
 * the load that the plan gives it, and the way there and back. Where the snapshot has no profile of it, the class's
 * expected time there, which is never less.
 */
export function expectedTtftMs(snapshot: ClusterSnapshot, requestClass: string, engine: string): number {
  const planned = snapshot.engines[engine];
  const spec = snapshot.classes[requestClass];
  if (planned === undefined || spec === undefined) return 0;
  const { latency, rttMs, loadWps, capacityWps } = planned;
  if (latency === undefined) {
    const cell = snapshot.cells.find((each) => each.class === requestClass);
    return cell?.expectedMs[cell.engines.indexOf(engine)] ?? rttMs;
  }
  const utilisation = capacityWps > 0 ? Math.min(1, loadWps / capacityWps) : 0;
  const longerPromptMs = latency.prefillMsPerTok * (spec.promptTokens - latency.promptTokens);
  return rttMs + Math.max(0, valueAt(latency.ttftMs, utilisation) + longerPromptMs);
}

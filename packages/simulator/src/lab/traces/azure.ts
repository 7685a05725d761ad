import type { Workload } from "../workload.ts";
import { placeRequests } from "./place-requests.ts";
import { badLine, csvRows, numberAt, type TraceOptions } from "./trace-options.ts";

/**
 * Azure's LLM inference traces of 2023: CSV of `TIMESTAMP` (UTC), `ContextTokens`, `GeneratedTokens`. They have no sessions
 * and no prefixes, so every request is alone.
 *
 * @throws GuidevaneError `bad_trace` naming the line
 */
export function readAzure(text: string, options: TraceOptions): Workload {
  const { name } = options;
  const requests = csvRows(text).map(({ line, cells }) => {
    const atMs = Date.parse(`${cells.TIMESTAMP?.replace(" ", "T").slice(0, 23)}Z`);
    if (Number.isNaN(atMs)) badLine(name, line, "TIMESTAMP must be a time", cells.TIMESTAMP);
    return {
      atMs,
      promptTokens: numberAt(name, line, "ContextTokens", cells.ContextTokens, 1),
      outputTokens: numberAt(name, line, "GeneratedTokens", cells.GeneratedTokens, 0),
    };
  });
  return placeRequests(requests, options, ["no request shares a prefix with another: the trace has no sessions"]);
}

import { seededRandom } from "@guidevane/core";
import type { Workload } from "../workload.ts";
import { placeRequests, type TraceRequest } from "./place-requests.ts";
import { badLine, jsonLines, numberAt, type TraceOptions } from "./trace-options.ts";

const BLOCK_TOKENS = 64;
/** Blocks are taken together by so many: sessions of 100,000 tokens would be thousands of them. */
const TOGETHER = 8;
/** Sessions are begun evenly over this long. */
const BEGIN_OVER_MS = 3_600_000;

/**
 * Sessions of coding agents (kv-cache-tester): JSONL of `session`, `t` (s), `input_tokens`, `output_tokens`, `block_runs`
 * (prefix blocks of 64 tokens as runs of `[first, count]`, local to a session).
 *
 * @throws GuidevaneError `bad_trace` naming the line
 */
export function readAgentic(text: string, options: TraceOptions): Workload {
  const { name, seed } = options;
  const random = seededRandom(seed + 1);
  const begun = new Map<string, number>();
  const ids = new Map<string, number>();
  const requests = jsonLines(name, text).map(({ line, value }): TraceRequest => {
    const { session, block_runs: runs } = value;
    if (typeof session !== "string") return badLine(name, line, "session must be a text", session);
    if (!Array.isArray(runs)) return badLine(name, line, "block_runs must be a list", runs);
    const beginMs = begun.get(session) ?? random() * BEGIN_OVER_MS;
    begun.set(session, beginMs);
    const blocks: number[] = [];
    let at = 0;
    for (const [first, count] of runs as [number, number][]) {
      for (let i = 0; i < count; i++, at++) {
        // Equal ids are equal content and equal content before it: the last of a group stands for the group.
        if (at % TOGETHER === TOGETHER - 1) blocks.push(numberOf(ids, `${session}:${first + i}`));
      }
    }
    return {
      atMs: beginMs + 1000 * numberAt(name, line, "t", value.t, 0),
      promptTokens: numberAt(name, line, "input_tokens", value.input_tokens, 1),
      outputTokens: numberAt(name, line, "output_tokens", value.output_tokens, 0),
      session,
      blocks,
    };
  });
  const assumptions = ["sessions have no time of day in the trace: they are begun evenly over an hour"];
  return placeRequests(requests, options, assumptions, BLOCK_TOKENS * TOGETHER);
}

function numberOf(ids: Map<string, number>, key: string): number {
  const known = ids.get(key) ?? ids.size;
  ids.set(key, known);
  return known;
}

import { seededRandom } from "@guidevane/core";
import type { Workload } from "../workload.ts";
import { placeRequests } from "./place-requests.ts";
import { badLine, jsonLines, numberAt, type TraceOptions } from "./trace-options.ts";

/** Its arrivals stand on a grid of 3 s. */
const GRID_MS = 3000;
const BLOCK_TOKENS = 512;

/**
 * Mooncake's traces: JSONL of `timestamp` (ms), `input_length`, `output_length`, `hash_ids` (ids of the prompt's blocks of
 * 512 tokens). They have no sessions; the second block stands for one, since all requests share the first.
 *
 * @throws GuidevaneError `bad_trace` naming the line
 */
export function readMooncake(text: string, options: TraceOptions): Workload {
  const { name, seed } = options;
  const random = seededRandom(seed + 1);
  const requests = jsonLines(name, text).map(({ line, value }) => {
    const ids = value.hash_ids;
    if (!Array.isArray(ids) || !ids.every((id) => Number.isInteger(id) && id >= 0))
      return badLine(name, line, "hash_ids must be a list of whole numbers", ids);
    return {
      atMs: numberAt(name, line, "timestamp", value.timestamp, 0) + random() * GRID_MS,
      promptTokens: numberAt(name, line, "input_length", value.input_length, 1),
      outputTokens: numberAt(name, line, "output_length", value.output_length, 0),
      session: ids.length > 1 ? `block ${ids[1]}` : `line ${line}`,
      blocks: ids as number[],
    };
  });
  const assumptions = [
    "arrivals stand on a grid of 3 s in the trace and are spread evenly over it",
    "requests with the same second prefix block are one conversation; answers are in no cache until a prompt repeats them",
  ];
  return placeRequests(requests, options, assumptions, BLOCK_TOKENS);
}

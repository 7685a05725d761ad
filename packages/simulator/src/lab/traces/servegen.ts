import { GuidevaneError, seededRandom } from "@guidevane/core";
import type { Workload } from "../workload.ts";
import { placeRequests, type TraceRequest } from "./place-requests.ts";
import { csvRows, numberAt, type TraceOptions } from "./trace-options.ts";

const WINDOW_MS = 600_000;
/** More requests than this are not drawn: `speed` below 1, or a shorter part, is meant. */
const REQUESTS_MAX = 3_000_000;

/**
 * ServeGen's rates: CSV of `model`, `window_start_s`, `rate_rps` over windows of ten minutes. They say when, not what: a
 * Poisson stream of that rate, of requests of the class's own size.
 *
 * @param model which of its models; the first in the file when null
 * @param scale what rates are multiplied by
 * @throws GuidevaneError `bad_trace` naming the line, or for a model that the file doesn't have
 */
export function readServegen(
  text: string,
  options: TraceOptions & { readonly model: string | null; readonly scale: number },
  size: { readonly promptTokens: number; readonly outputTokens: number },
): Workload {
  const { name, seed, scale, seconds = Number.POSITIVE_INFINITY, speed = 1 } = options;
  const all = csvRows(text);
  const model = options.model ?? all[0]?.cells.model ?? "";
  const rows = all.filter(({ cells }) => cells.model === model);
  if (rows.length === 0)
    throw new GuidevaneError(
      "bad_trace",
      `${name}: has no model ${model}; it has ${[...new Set(all.map(({ cells }) => cells.model))]}`,
    );
  const random = seededRandom(seed + 1);
  const startMs = 1000 * numberAt(name, rows[0]!.line, "window_start_s", rows[0]!.cells.window_start_s, 0);
  const requests: TraceRequest[] = [];
  for (const { line, cells } of rows) {
    const fromMs = 1000 * numberAt(name, line, "window_start_s", cells.window_start_s, 0) - startMs;
    if (fromMs >= seconds * speed * 1000) break;
    const perMs = (scale * numberAt(name, line, "rate_rps", cells.rate_rps, 0)) / 1000;
    if (!(perMs > 0)) continue;
    let atMs = fromMs;
    for (;;) {
      atMs -= Math.log(1 - random()) / perMs;
      if (atMs >= fromMs + WINDOW_MS) break;
      requests.push({ atMs, ...size });
      if (requests.length > REQUESTS_MAX)
        throw new GuidevaneError(
          "bad_trace",
          `${name}: more than ${REQUESTS_MAX} requests; take fewer seconds or a smaller scale`,
        );
    }
  }
  const assumptions = [
    `Poisson arrivals at ${scale === 1 ? "" : `${scale} times `}the trace's rate of ${model} in each window`,
    "every request has the class's own token counts and shares no prefix: the trace has rates only",
  ];
  return placeRequests(requests, options, assumptions);
}

import type { PrometheusPage, Sample } from "../prometheus-text.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { averageOf, bySeries, counterNames, firstOf, onceFor, sumOf } from "./series.ts";

/**
 * SGLang's metrics, names from its metrics collector and recorded pages. The prefix has been `sglang:` and, for a while in
 * late 2025, `sglang_`; both are read. Ranks of one tensor-parallel group repeat each other; data-parallel ranks don't.
 */
export const sglangDialect: Dialect = {
  kind: "sglang",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(find(page, "num_running_reqs")),
        waiting: sumOf(find(page, "num_queue_reqs")),
        kvUsage: averageOf(find(page, "token_usage")),
        readyReplicas: "not-offered",
      },
      counters: {
        promptTokens: counter(page, "prompt_tokens"),
        generationTokens: counter(page, "generation_tokens"),
        successes: counter(page, "num_requests"),
      },
    };
  },
};

const PREFIXES = ["sglang:", "sglang_"] as const;
const WANTED: ReadonlySet<string> = new Set(
  PREFIXES.flatMap((prefix) =>
    [
      ...["num_running_reqs", "num_queue_reqs", "token_usage"],
      ...counterNames(["prompt_tokens", "generation_tokens", "num_requests"]),
    ].map((name) => prefix + name),
  ),
);

function find(page: PrometheusPage, ...names: readonly string[]): readonly Sample[] {
  const all = names.flatMap((name) => PREFIXES.map((prefix) => prefix + name));
  return onceFor(firstOf(page, all), "tp_rank");
}

function counter(page: PrometheusPage, name: string): ReadonlyMap<string, number> {
  return bySeries(find(page, `${name}_total`, name));
}

import type { PrometheusPage } from "../prometheus-text.ts";
import type { Dialect, Reading, Said } from "./dialect.ts";
import { averageOf, firstOf, NO_COUNTS, sumOf } from "./series.ts";

/**
 * The endpoint picker of an llm-d or Gateway API inference pool: an engine that is itself a cluster. Names from llm-d's router
 * metrics (`llm_d_epp_`, earlier `llm_d_router_epp_` and `inference_pool_`). It tells averages over its ready endpoints.
 */
export const poolDialect: Dialect = {
  kind: "pool",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    const ready = sumOf(firstOf(page, READY));
    return {
      signals: {
        running: times(ready, averageOf(firstOf(page, named("average_running_requests")))),
        waiting: times(ready, averageOf(firstOf(page, named("average_queue_size")))),
        kvUsage: averageOf(firstOf(page, named("average_kv_cache_utilization"))),
        readyReplicas: ready,
      },
      counters: { promptTokens: NO_COUNTS, generationTokens: NO_COUNTS, successes: NO_COUNTS },
    };
  },
};

const PREFIXES = ["llm_d_epp_", "llm_d_router_epp_", "inference_pool_"] as const;

function named(name: string): string[] {
  return PREFIXES.map((prefix) => prefix + name);
}

const READY = [...named("ready_endpoints"), ...named("ready_pods")];
const WANTED: ReadonlySet<string> = new Set([
  ...READY,
  ...["average_running_requests", "average_queue_size", "average_kv_cache_utilization"].flatMap(named),
]);

/** What an average over the ready comes to in all. */
function times(ready: Said, average: Said): Said {
  return typeof ready === "number" && typeof average === "number" ? ready * average : "missing";
}

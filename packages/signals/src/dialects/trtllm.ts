import type { PrometheusPage } from "../prometheus-text.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { averageOf, counterNames, counterOf, firstOf, NO_COUNTS, sumOf } from "./series.ts";

/** trtllm-serve's metrics, names from TensorRT-LLM's metrics collector. They are not at `/metrics`, and have no token counts. */
export const trtllmDialect: Dialect = {
  kind: "trtllm",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(firstOf(page, ["trtllm_num_requests_running"])),
        waiting: sumOf(firstOf(page, ["trtllm_num_requests_waiting"])),
        kvUsage: averageOf(firstOf(page, ["trtllm_kv_cache_utilization"])),
        readyReplicas: "not-offered",
      },
      counters: {
        promptTokens: NO_COUNTS,
        generationTokens: NO_COUNTS,
        successes: counterOf(page, "trtllm_request_success"),
      },
    };
  },
};

const WANTED: ReadonlySet<string> = new Set([
  ...["trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization"],
  ...counterNames(["trtllm_request_success"]),
]);

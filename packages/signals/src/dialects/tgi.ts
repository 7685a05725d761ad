import type { PrometheusPage } from "../prometheus-text.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { bySeries, counterNames, counterOf, firstOf, sumOf } from "./series.ts";

/**
 * Text Generation Inference's metrics, names from its metrics reference. It says nothing of its cache, and counts tokens as
 * the sums of histograms.
 */
export const tgiDialect: Dialect = {
  kind: "tgi",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(firstOf(page, ["tgi_batch_current_size"])),
        waiting: sumOf(firstOf(page, ["tgi_queue_size"])),
        kvUsage: "not-offered",
        readyReplicas: "not-offered",
      },
      counters: {
        promptTokens: bySeries(firstOf(page, ["tgi_request_input_length_sum"])),
        generationTokens: bySeries(firstOf(page, ["tgi_request_generated_tokens_sum"])),
        successes: counterOf(page, "tgi_request_success"),
      },
    };
  },
};

const WANTED: ReadonlySet<string> = new Set([
  ...["tgi_batch_current_size", "tgi_queue_size", "tgi_request_input_length_sum", "tgi_request_generated_tokens_sum"],
  ...counterNames(["tgi_request_success"]),
]);

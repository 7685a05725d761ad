import type { PrometheusPage, Sample } from "../prometheus-text.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { averageOf, counterNames, counterOf, firstOf, NO_COUNTS, ratioOf, sumOf } from "./series.ts";

/**
 * Triton with the TensorRT-LLM backend, names from the backend's README. One series with a label where others have several;
 * usually at port 8002, which the fleet file says (`metrics: { port: 8002 }`).
 */
export const tritonDialect: Dialect = {
  kind: "triton",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(labelled(page, REQUESTS, "request_type", "active")),
        waiting: sumOf(labelled(page, REQUESTS, "request_type", "waiting")),
        kvUsage: kvUsage(page),
        readyReplicas: "not-offered",
      },
      counters: {
        promptTokens: NO_COUNTS,
        generationTokens: NO_COUNTS,
        successes: counterOf(page, "nv_inference_request_success"),
      },
    };
  },
};

const REQUESTS = "nv_trt_llm_request_metrics";
const BLOCKS = "nv_trt_llm_kv_cache_block_metrics";
const WANTED: ReadonlySet<string> = new Set([REQUESTS, BLOCKS, ...counterNames(["nv_inference_request_success"])]);

/** Newer backends give the fraction; of older ones it is the blocks used over all. */
function kvUsage(page: PrometheusPage): number | "missing" {
  const blocks = (type: string): readonly Sample[] => labelled(page, BLOCKS, "kv_cache_block_type", type);
  const fraction = blocks("fraction");
  return fraction.length > 0 ? averageOf(fraction) : ratioOf(sumOf(blocks("used")), sumOf(blocks("max")));
}

function labelled(page: PrometheusPage, name: string, label: string, value: string): readonly Sample[] {
  return firstOf(page, [name]).filter((sample) => sample.labels[label] === value);
}

import { MetricsPage } from "../metrics-page.ts";
import type { EmulatedKind, EngineState } from "./kind.ts";

/**
 * llama.cpp's server of October 2026, as recorded: it takes any model's name for its own, keeps back a stream's head until a
 * slot is free, and says how full it is at `/slots`.
 */
export const llamacpp: EmulatedKind = {
  healthPath: "/health",
  healthy: JSON.stringify({ status: "ok" }),
  metricsPath: "/metrics",
  metrics({ running, waiting, stats }: EngineState): string {
    const page = new MetricsPage({});
    const { promptTokens, cachedTokens } = stats;
    const read = "Number of prompt tokens processed, excluding cached tokens";
    page.counter("llamacpp:prompt_tokens_total", read, promptTokens - cachedTokens);
    const reused = "Number of prompt tokens reused from the cache";
    page.counter("llamacpp:prompt_tokens_cached_total", reused, cachedTokens);
    const made = "Number of generation tokens processed";
    page.counter("llamacpp:tokens_predicted_total", made, stats.generationTokens);
    page.gauge("llamacpp:requests_processing", "Number of requests processing", running);
    page.gauge("llamacpp:requests_deferred", "Number of requests deferred", waiting);
    return page.text();
  },
  pages: {
    "/slots": ({ slots, running }) =>
      JSON.stringify(Array.from({ length: slots }, (_, id) => ({ id, is_processing: id < running }))),
  },
  checksModel: false,
  headAtOnce: false,
  refusal: ({ message, status }) => ({
    status,
    json: JSON.stringify({ error: { code: status, message, type: typeOf(status) } }),
  }),
  notFound: JSON.stringify({ error: { message: "File Not Found", type: "not_found_error", code: 404 } }),
};

function typeOf(status: number): string {
  if (status === 503) return "unavailable_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

import { MetricsPage } from "../metrics-page.ts";
import type { EmulatedKind, EngineState } from "./kind.ts";

/**
 * Text Generation Inference 3: names of its metrics reference, which has none for the cache. Errors as its `router/src/server.rs`
 * and `infer/mod.rs` write them (read in the source, not recorded): 422 `validation`, 429 `overloaded`, 424 `generation`, 500
 * `incomplete_generation`. A body that is no JSON of the right form has a text instead in a real one, by its web framework; a real
 * one says 429 where it is full, never 503.
 */
export const tgi: EmulatedKind = {
  healthPath: "/health",
  healthy: "",
  metricsPath: "/metrics",
  metrics(state: EngineState): string {
    const { stats } = state;
    const page = new MetricsPage({});
    page.gauge("tgi_batch_current_size", "Current batch size", state.running);
    page.gauge("tgi_queue_size", "Current queue size", state.waiting);
    const { succeeded: count } = stats;
    const ofTokens = (sum: number) => ({ buckets: [["+Inf", count] as const], sum, count });
    page.histogram("tgi_request_input_length", "Input token length per request", ofTokens(stats.promptTokens));
    page.histogram("tgi_request_generated_tokens", "Generated tokens per request", ofTokens(stats.generationTokens));
    page.histogram("tgi_request_duration", "Total time spent processing the request", stats.requestSeconds);
    page.histogram("tgi_request_mean_time_per_token_duration", "Mean time per token per request", stats.tokenSeconds);
    page.counter("tgi_request_count", "Total number of requests", count + stats.finished.abort);
    page.counter("tgi_request_success", "Number of successful requests", count);
    return page.text();
  },
  pages: {},
  checksModel: false,
  headAtOnce: true,
  refusal: ({ message, status }) => ({
    status: status === 400 ? 422 : status,
    json: JSON.stringify({ error: message, error_type: typeOf(status) }),
  }),
  notFound: "",
};

function typeOf(status: number): string {
  if (status === 429 || status === 503) return "overloaded";
  if (status === 424) return "generation";
  return status < 500 ? "validation" : "incomplete_generation";
}

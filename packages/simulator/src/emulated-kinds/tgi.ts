import { MetricsPage } from "../metrics-page.ts";
import type { EmulatedKind, EngineState } from "./kind.ts";

/** Text Generation Inference 3: names of its metrics reference, which has none for the cache; errors by its published schema. */
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
  refusal: ({ message, status }) => {
    const overloaded = status === 429 || status === 503;
    const type = overloaded ? "overloaded" : status < 500 ? "validation" : "generation";
    return { status: status === 400 ? 422 : status, json: JSON.stringify({ error: message, error_type: type }) };
  },
  notFound: "",
};

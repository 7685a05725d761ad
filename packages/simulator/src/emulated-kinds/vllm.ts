import { MetricsPage } from "../metrics-page.ts";
import { type EmulatedKind, type EngineState, FASTAPI } from "./kind.ts";

/** vLLM 0.32: names, buckets and errors as recorded, and one gauge that real engines have no word for, ready replicas. */
export const vllm: EmulatedKind = {
  ...FASTAPI,
  healthPath: "/health",
  metricsPath: "/metrics",
  metrics(state: EngineState): string {
    const { stats } = state;
    const page = new MetricsPage({ engine: "0", model_name: state.model });
    page.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", state.running);
    page.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", state.waiting);
    page.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", state.kvUsage);
    page.counter("vllm:num_preemptions_total", "Cumulative number of preemptions.", state.preemptions);
    page.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens.", stats.promptTokens);
    page.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens.", stats.cachedTokens);
    page.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", stats.promptTokens);
    page.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", stats.generationTokens);
    const ends = "Count of finished requests.";
    page.split("vllm:request_success_total", "counter", ends, "finished_reason", stats.finished);
    page.histogram("vllm:time_to_first_token_seconds", "Time to first token in seconds.", stats.ttftSeconds);
    page.histogram("vllm:inter_token_latency_seconds", "Inter-token latency in seconds.", stats.tokenSeconds);
    page.histogram("vllm:e2e_request_latency_seconds", "End to end request latency in seconds.", stats.requestSeconds);
    page.gauge("guidevane_emulator_ready_replicas", "Replicas that take requests.", state.readyReplicas);
    return page.text();
  },
  refusal: ({ message, type, param, status }) => ({
    status,
    json: JSON.stringify({ error: { message, type, param, code: status } }),
  }),
};

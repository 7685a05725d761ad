import { MetricsPage } from "../metrics-page.ts";
import { bareError, type EmulatedKind, type EngineState, FASTAPI } from "./kind.ts";

/**
 * trtllm-serve 1: names of its metrics collector, which counts no tokens. Errors as its `serve/openai_server.py` writes them (read
 * in the source, not recorded): no wrapper, `param` always null, `BadRequestError` with 400 for whatever a request meets, a failure
 * of its own too. The model's name is not looked at.
 */
export const trtllm: EmulatedKind = {
  ...FASTAPI,
  healthPath: "/health",
  metricsPath: "/prometheus/metrics",
  metrics(state: EngineState): string {
    const { stats } = state;
    const page = new MetricsPage({ model_name: state.model, engine_type: "trtllm" });
    page.gauge("trtllm_num_requests_running", "Number of requests running.", state.running);
    page.gauge("trtllm_num_requests_waiting", "Number of requests waiting.", state.waiting);
    page.gauge("trtllm_kv_cache_utilization", "KV cache utilization.", state.kvUsage);
    page.gauge("trtllm_kv_cache_hit_rate", "KV cache hit rate.", stats.cachedShare);
    page.gauge("trtllm_kv_cache_max_blocks", "KV cache blocks in all.", state.kvBlocks);
    page.gauge("trtllm_kv_cache_tokens_per_block", "Tokens of a KV cache block.", state.blockTokens);
    const { stop, length } = stats.finished;
    const ends = "Count of successfully processed requests.";
    page.split("trtllm_request_success_total", "counter", ends, "finished_reason", { stop, length });
    page.histogram("trtllm_time_to_first_token_seconds", "Time to first token in seconds.", stats.ttftSeconds);
    page.histogram("trtllm_time_per_output_token_seconds", "Time per output token in seconds.", stats.tokenSeconds);
    page.histogram("trtllm_e2e_request_latency_seconds", "End to end latency in seconds.", stats.requestSeconds);
    return page.text();
  },
  checksModel: false,
  refusal: ({ message, status }) =>
    bareError({ message, status, param: null, type: status < 500 ? "BadRequestError" : "InternalServerError" }),
};

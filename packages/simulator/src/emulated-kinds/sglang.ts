import { MetricsPage } from "../metrics-page.ts";
import { bareError, type EmulatedKind, type EngineState, FASTAPI } from "./kind.ts";

/**
 * SGLang 0.5: names of a recorded page. Errors as its `srt/entrypoints/http_server.py` and `openai/serving_base.py` write them
 * (read in the source, not recorded): no wrapper, `param` always null; a body that is not valid has 400 and `Bad Request`, what its
 * scheduler refuses (a full queue: 503) the status as type. The model's name is not looked at.
 */
export const sglang: EmulatedKind = {
  ...FASTAPI,
  healthPath: "/health",
  metricsPath: "/metrics",
  metrics(state: EngineState): string {
    const { stats } = state;
    const page = new MetricsPage({ model_name: state.model, tp_rank: "0" });
    const kvTokens = state.kvBlocks * state.blockTokens;
    page.gauge("sglang:num_running_reqs", "The number of running requests.", state.running);
    page.gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", state.waiting);
    page.gauge("sglang:num_used_tokens", "The number of used tokens.", Math.round(state.kvUsage * kvTokens));
    page.gauge("sglang:token_usage", "The token usage.", state.kvUsage);
    page.gauge("sglang:cache_hit_rate", "The prefix cache hit rate.", stats.cachedShare);
    page.gauge("sglang:max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", kvTokens);
    page.counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", stats.promptTokens);
    page.counter("sglang:generation_tokens_total", "Number of generation tokens processed.", stats.generationTokens);
    page.counter("sglang:cached_tokens_total", "Number of cached prompt tokens.", stats.cachedTokens);
    page.counter("sglang:num_requests_total", "Number of requests processed.", stats.succeeded);
    page.histogram("sglang:time_to_first_token_seconds", "Time to first token in seconds.", stats.ttftSeconds);
    page.histogram("sglang:inter_token_latency_seconds", "Inter-token latency in seconds.", stats.tokenSeconds);
    page.histogram("sglang:e2e_request_latency_seconds", "End-to-end latency in seconds.", stats.requestSeconds);
    return page.text();
  },
  checksModel: false,
  refusal: ({ message, status }) =>
    bareError({ message, status, param: null, type: status === 400 ? "Bad Request" : String(status) }),
};

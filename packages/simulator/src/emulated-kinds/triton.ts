import { MetricsPage } from "../metrics-page.ts";
import { type EmulatedKind, type EngineState, FASTAPI } from "./kind.ts";

/**
 * Triton with the TensorRT-LLM backend behind its OpenAI frontend: metrics of a recorded page. Errors as its
 * `openai_frontend/frontend/fastapi` writes them (read in the source, not recorded): FastAPI's own 422 with a list where a body is
 * not valid, else a text: 400 for an unknown model, 500 for all that fails inside.
 * A real one has its metrics at port 8002; here they are beside the rest.
 */
export const triton: EmulatedKind = {
  ...FASTAPI,
  healthPath: "/v2/health/ready",
  metricsPath: "/metrics",
  metrics(state: EngineState): string {
    const { running, waiting, slots, kvUsage, kvBlocks, blockTokens, stats } = state;
    const page = new MetricsPage({ model: state.model, version: "1" });
    const requests = { waiting, scheduled: running, max: slots, active: running };
    page.split("nv_trt_llm_request_metrics", "gauge", "TRT LLM request metrics", "request_type", requests);
    const used = Math.round(kvUsage * kvBlocks);
    const blocks = { fraction: kvUsage, tokens_per: blockTokens, used, free: kvBlocks - used, max: kvBlocks };
    const help = "TRT LLM KV cache block metrics";
    page.split("nv_trt_llm_kv_cache_block_metrics", "gauge", help, "kv_cache_block_type", blocks);
    page.counter("nv_inference_request_success", "Number of successful inference requests", stats.succeeded);
    const failed = "Number of failed inference requests";
    page.counter("nv_inference_request_failure", failed, stats.finished.abort);
    const durationUs = Math.round(stats.requestSeconds.sum * 1e6);
    page.counter("nv_inference_request_duration_us", "Cumulative inference request duration", durationUs);
    page.gauge("nv_inference_pending_request_count", "Number of pending requests awaiting execution", waiting);
    return page.text();
  },
  refusal: ({ message, param, status }) => {
    if (status === 400) {
      const problem = {
        type: "value_error",
        loc: param === null ? ["body"] : ["body", param],
        msg: message,
        input: null,
      };
      return { status: 422, json: JSON.stringify({ detail: [problem] }) };
    }
    return { status: status === 404 ? 400 : status, json: JSON.stringify({ detail: message }) };
  },
};

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineKind } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { parsePrometheusText } from "../prometheus-text.ts";
import { dialectOf, dialectOfPage, wantedByAny } from "./index.ts";
import { read, total } from "./reading.fixture.ts";

describe("SGLang's dialect", () => {
  it("takes the ranks of a tensor-parallel group once and adds data-parallel ones", () => {
    const { signals, counters } = read(
      "sglang",
      `
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 3
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 3
sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 5
sglang:num_running_reqs{dp_rank="1",tp_rank="1"} 5
sglang:num_queue_reqs{dp_rank="0",tp_rank="0"} 1
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.2
sglang:token_usage{dp_rank="0",tp_rank="1"} 0.2
sglang:token_usage{dp_rank="1",tp_rank="0"} 0.6
sglang:prompt_tokens_total{dp_rank="0",tp_rank="0"} 100
sglang:prompt_tokens_total{dp_rank="0",tp_rank="1"} 100
`,
    );
    expect(signals).toEqual({ running: 8, waiting: 1, kvUsage: 0.4, readyReplicas: "not-offered" });
    expect(total(counters.promptTokens)).toBe(100);
  });

  it("reads both of its prefixes", () => {
    expect(read("sglang", "sglang_num_running_reqs 4\nsglang_token_usage 0.5\n").signals).toMatchObject({
      running: 4,
      waiting: "missing",
      kvUsage: 0.5,
    });
  });

  it("takes a rank without a number for no number", () => {
    const text = 'sglang:num_running_reqs{tp_rank="0"} NaN\nsglang:num_running_reqs{tp_rank="1"} NaN\n';
    expect(read("sglang", text).signals.running).toBe("missing");
  });
});

describe("TGI's dialect", () => {
  it("reads batch and queue, counts tokens by the sums of histograms, and offers no cache", () => {
    const { signals, counters } = read(
      "tgi",
      `
tgi_batch_current_size 7
tgi_queue_size 2
tgi_request_input_length_sum 1200
tgi_request_input_length_count 3
tgi_request_generated_tokens_sum 90
tgi_request_success 3
`,
    );
    expect(signals).toEqual({ running: 7, waiting: 2, kvUsage: "not-offered", readyReplicas: "not-offered" });
    expect([counters.promptTokens, counters.generationTokens, counters.successes].map(total)).toEqual([1200, 90, 3]);
  });
});

describe("trtllm-serve's dialect", () => {
  it("reads its gauges", () => {
    const text = "trtllm_num_requests_running 6\ntrtllm_num_requests_waiting 1\ntrtllm_kv_cache_utilization 0.25\n";
    expect(read("trtllm", text).signals).toEqual({
      running: 6,
      waiting: 1,
      kvUsage: 0.25,
      readyReplicas: "not-offered",
    });
  });
});

describe("Triton's dialect", () => {
  it("works the cache's fullness out of the blocks where the fraction is not given", () => {
    const blocks = (type: string, value: number) =>
      `nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="${type}"} ${value}\n`;
    expect(read("triton", blocks("used", 30) + blocks("max", 120)).signals.kvUsage).toBe(0.25);
    expect(read("triton", blocks("used", 30) + blocks("max", 0)).signals.kvUsage).toBe("missing");
    expect(read("triton", blocks("used", 30) + blocks("max", 120) + blocks("fraction", 0.5)).signals.kvUsage).toBe(0.5);
  });
});

describe("llama.cpp's dialect", () => {
  const slots = dialectOf("llamacpp")!.aside!;

  it("takes the part of the slots that are busy for the cache's fullness", () => {
    const page = (...busy: boolean[]) => JSON.stringify(busy.map((is_processing, id) => ({ id, is_processing })));
    expect(slots.path).toBe("/slots");
    expect(slots.read(page(true, false, false, true))).toBe(0.5);
    expect(slots.read(page(false))).toBe(0);
  });

  it.each(["", "[", "[]", "{}", '[{"id":0}]', "[null]", '[{"is_processing":"yes"}]'])(
    "says missing for a page of slots that is %j",
    (text) => expect(slots.read(text)).toBe("missing"),
  );
});

describe("a pool's dialect", () => {
  it.each(["llm_d_epp_", "inference_pool_"])("makes totals of the averages over its ready endpoints (%s)", (prefix) => {
    const ready = prefix === "llm_d_epp_" ? "ready_endpoints" : "ready_pods";
    const text = `${prefix}${ready}{name="p"} 4\n${prefix}average_queue_size{name="p"} 0.5\n${prefix}average_kv_cache_utilization{name="p"} 0.41\n${prefix}average_running_requests{name="p"} 3\n`;
    expect(read("pool", text).signals).toEqual({ running: 12, waiting: 2, kvUsage: 0.41, readyReplicas: 4 });
  });

  it("knows no totals without the count, and that none ready is zero", () => {
    expect(read("pool", "llm_d_epp_average_queue_size 3\n").signals).toMatchObject({
      waiting: "missing",
      readyReplicas: "missing",
    });
    expect(read("pool", "inference_pool_ready_pods 0\n").signals.readyReplicas).toBe(0);
  });
});

describe("the dialect of a page", () => {
  const spoken = (text: string, kind: EngineKind) =>
    dialectOfPage(parsePrometheusText(text, wantedByAny), kind)?.kind ?? null;

  it("is the one that the fleet file says where the page has any of it, else what the page is", () => {
    expect(spoken("vllm:num_requests_running 1\nsglang:num_running_reqs 1\n", "sglang")).toBe("sglang");
    expect(spoken("sglang:num_running_reqs 1\n", "vllm")).toBe("sglang");
    expect(spoken("ray_vllm:num_requests_running 1\n", "vllm")).toBe("vllm");
    expect(spoken("go_goroutines 7\n", "vllm")).toBeNull();
  });

  it("survives pages that are cut off, doubled, or of ten megabytes", () => {
    const line = 'sglang:num_running_reqs{model_name="m",tp_rank="0"} 3\n';
    expect(read("sglang", line.slice(0, -4)).signals.running).toBe("missing");
    // The same series twice is one series.
    expect(read("sglang", line + line).signals.running).toBe(3);
    const noise = `python_gc_objects_collected_total{generation="0"} 500\n`.repeat(190_000);
    expect(noise.length).toBeGreaterThan(10_000_000);
    expect(read("sglang", noise + line).signals.running).toBe(3);
  });
});

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../../shared/data");
const hasData = existsSync(join(DATA, "metrics"));

/** Expected values were read off the recorded pages by eye. */
describe.skipIf(!hasData)(`recorded pages${hasData ? "" : " (skipped: no recorded data; set GUIDEVANE_DATA)"}`, () => {
  const page = (kind: EngineKind, path: string) => read(kind, readFileSync(join(DATA, path), "utf8"));

  it("of SGLang 0.5.10", () => {
    const { signals, counters } = page("sglang", "metrics/sglang_0.5.10_trimmed.txt");
    expect(signals).toEqual({ running: 0, waiting: 0, kvUsage: 0.25, readyReplicas: "not-offered" });
    expect([counters.promptTokens, counters.generationTokens, counters.successes].map(total)).toEqual([5, 32, 1]);
  });

  it("of SGLang of 2024, which shows no gauges here", () => {
    const { signals, counters } = page("sglang", "metrics/sglang_0.3_name_label_partial.txt");
    expect(signals).toMatchObject({ running: "missing", waiting: "missing", kvUsage: "missing" });
    expect(total(counters.promptTokens)).toBe(230_794);
  });

  it("of Triton with TensorRT-LLM", () => {
    const { signals, counters } = page("triton", "metrics/triton_tensorrtllm_partial.txt");
    expect(signals).toEqual({ running: 0, waiting: 1, kvUsage: 0.4875, readyReplicas: "not-offered" });
    expect(total(counters.successes)).toBe(0);
  });

  it("of TensorRT-LLM by its own names, which shows no gauges here", () => {
    const { signals, counters } = page("trtllm", "metrics/trtllm_via_dynamo_illustrative.txt");
    expect(signals).toMatchObject({ running: "missing", waiting: "missing", kvUsage: "missing" });
    expect(total(counters.successes)).toBe(155);
  });

  it("B134: of llama.cpp, idle and under load, and its slots", () => {
    expect(page("llamacpp", "metrics/llamacpp_2026-08_idle_full.txt").signals).toMatchObject({
      running: 0,
      waiting: 0,
    });
    const { signals, counters } = page("llamacpp", "engines/llamacpp/metrics-load.txt");
    expect(signals).toMatchObject({ running: 4, waiting: 8 });
    expect([counters.promptTokens, counters.generationTokens].map(total)).toEqual([1365, 415]);
    const slots = readFileSync(join(DATA, "engines/llamacpp/get-slots-idle.json"), "utf8");
    expect(dialectOf("llamacpp")!.aside!.read(slots)).toBe(0);
  });

  it("of a kind that nobody reads is nobody's", () => {
    const text = readFileSync(join(DATA, "metrics/mindie_2025-04_partial.txt"), "utf8");
    expect(dialectOfPage(parsePrometheusText(text, wantedByAny), "vllm")).toBeNull();
  });
});

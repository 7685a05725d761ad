import type { CounterName, Dialect, Reading } from "./dialect.ts";
import type { PrometheusPage, Sample } from "./prometheus-text.ts";

/**
 * vLLM's metrics, v0 (2024) to v1 (2026), names from vLLM's docs/design/metrics.md and recorded pages.
 *
 * Each data-parallel rank and each model has series of its own: counts add, fractions average. Prometheus clients add
 * `_total` to a counter and design documents leave it out, so both are read.
 */
export const vllmDialect: Dialect = {
  kind: "vllm",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sum(page, "vllm:num_requests_running"),
        waiting: waiting(page),
        kvUsage: kvUsage(page),
        readyReplicas: readyReplicas(page),
      },
      counters: {
        promptTokens: counter(page, "promptTokens"),
        generationTokens: counter(page, "generationTokens"),
        successes: counter(page, "successes"),
      },
    };
  },
};

/** Published by engines that know how many replicas stand behind them; vLLM itself does not. */
const READY_REPLICAS = "guidevane_emulator_ready_replicas";

const COUNTERS: Readonly<Record<CounterName, string>> = {
  promptTokens: "vllm:prompt_tokens",
  generationTokens: "vllm:generation_tokens",
  successes: "vllm:request_success",
};

const WANTED: ReadonlySet<string> = new Set([
  "vllm:num_requests_running",
  "vllm:num_requests_waiting",
  "vllm:num_requests_waiting_by_reason",
  "vllm:kv_cache_usage_perc",
  "vllm:gpu_cache_usage_perc",
  READY_REPLICAS,
  ...Object.values(COUNTERS).flatMap((name) => [name, `${name}_total`]),
]);

/**
 * Requests waiting for room. Where the page splits them, only `capacity` counts: `deferred` ones wait for an adapter, a
 * grammar or a transfer, which no other engine's room would help.
 */
function waiting(page: PrometheusPage): number | "missing" {
  const split = page.samples.get("vllm:num_requests_waiting_by_reason") ?? [];
  const forRoom = split.filter((sample) => sample.labels.reason === "capacity");
  return forRoom.length > 0 ? add(forRoom) : sum(page, "vllm:num_requests_waiting");
}

/** Renamed from `gpu_cache_usage_perc` in 2025; some versions give both, with the same meaning. */
function kvUsage(page: PrometheusPage): number | "missing" {
  const samples = page.samples.get("vllm:kv_cache_usage_perc") ?? page.samples.get("vllm:gpu_cache_usage_perc") ?? [];
  const total = add(samples);
  return total === "missing" ? "missing" : total / samples.length;
}

function readyReplicas(page: PrometheusPage): number | "missing" | "not-offered" {
  return page.samples.has(READY_REPLICAS) ? sum(page, READY_REPLICAS) : "not-offered";
}

function sum(page: PrometheusPage, name: string): number | "missing" {
  return add(page.samples.get(name) ?? []);
}

/** One rank without a number makes the whole unknown: the rest would pass for the total. */
function add(samples: readonly Sample[]): number | "missing" {
  if (samples.length === 0) return "missing";
  let total = 0;
  for (const { value } of samples) {
    if (!Number.isFinite(value) || value < 0) return "missing";
    total += value;
  }
  return total;
}

function counter(page: PrometheusPage, name: CounterName): ReadonlyMap<string, number> {
  const samples = page.samples.get(`${COUNTERS[name]}_total`) ?? page.samples.get(COUNTERS[name]) ?? [];
  const series = new Map<string, number>();
  for (const { labels, value } of samples) {
    if (Number.isFinite(value) && value >= 0) series.set(JSON.stringify(Object.entries(labels).sort()), value);
  }
  return series;
}

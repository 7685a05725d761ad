import type { PrometheusPage, Sample } from "../prometheus-text.ts";
import type { CounterName, Dialect, Reading } from "./dialect.ts";
import { averageOf, bySeries, counterNames, firstOf, sumOf } from "./series.ts";

/**
 * vLLM's metrics, v0 (2024) to v1 (2026), names from vLLM's docs/design/metrics.md and recorded pages. Served through Ray
 * the same names begin with `ray_`.
 *
 * Each data-parallel rank and each model has series of its own: counts add, fractions average.
 */
export const vllmDialect: Dialect = {
  kind: "vllm",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(find(page, "vllm:num_requests_running")),
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

const NAMES = [
  "vllm:num_requests_running",
  "vllm:num_requests_waiting",
  "vllm:num_requests_waiting_by_reason",
  "vllm:kv_cache_usage_perc",
  "vllm:gpu_cache_usage_perc",
  "vllm:engine_sleep_state",
  ...counterNames(Object.values(COUNTERS)),
];
const WANTED: ReadonlySet<string> = new Set([READY_REPLICAS, ...NAMES, ...NAMES.map((name) => `ray_${name}`)]);

function find(page: PrometheusPage, ...names: readonly string[]): readonly Sample[] {
  return firstOf(
    page,
    names.flatMap((name) => [name, `ray_${name}`]),
  );
}

/**
 * Requests waiting for room. Where the page splits them, only `capacity` counts: `deferred` ones wait for an adapter, a
 * grammar or a transfer, which no other engine's room would help.
 */
function waiting(page: PrometheusPage): number | "missing" {
  const split = find(page, "vllm:num_requests_waiting_by_reason");
  const forRoom = split.filter((sample) => sample.labels.reason === "capacity");
  return sumOf(forRoom.length > 0 ? forRoom : find(page, "vllm:num_requests_waiting"));
}

/** Renamed from `gpu_cache_usage_perc` in 2025; some versions give both, with the same meaning. */
function kvUsage(page: PrometheusPage): number | "missing" {
  return averageOf(find(page, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"));
}

/** An engine that sleeps is healthy by its own word, takes requests and answers none: it has no replica that is ready. */
function readyReplicas(page: PrometheusPage): number | "missing" | "not-offered" {
  if (page.samples.has(READY_REPLICAS)) return sumOf(firstOf(page, [READY_REPLICAS]));
  const awake = find(page, "vllm:engine_sleep_state").filter(({ labels }) => labels.sleep_state === "awake");
  return sumOf(awake) === 0 ? 0 : "not-offered";
}

function counter(page: PrometheusPage, name: CounterName): ReadonlyMap<string, number> {
  return bySeries(find(page, `${COUNTERS[name]}_total`, COUNTERS[name]));
}

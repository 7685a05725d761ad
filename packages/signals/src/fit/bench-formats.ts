import { GuidevaneError } from "@guidevane/core";
import type { Place } from "./log-record.ts";

/** A record by the names of `docs/profiles.md`. */
type Named = Record<string, unknown>;

/**
 * A record of aiperf's `profile_export.jsonl` by our names; null for one that is none. Tokens are those that the engine counted,
 * where it said so: aiperf's own count leaves out what the chat template adds to a prompt.
 *
 * @throws GuidevaneError `bad_log`
 */
export function aiperfCells(record: Named, place: Place): Named | null {
  const { metadata, metrics, error } = record as {
    metadata?: Named;
    metrics?: Record<string, Metric>;
    error?: unknown;
  };
  if (typeof metadata !== "object" || metadata === null || !("request_start_ns" in metadata)) return null;
  const of = (name: string, unit: string): unknown => {
    const metric = metrics?.[name];
    if (metric === undefined) return undefined;
    if (metric.unit === unit) return metric.value;
    throw new GuidevaneError(
      "bad_log",
      `${place.file} line ${place.line}: metrics.${name}.unit: must be ${unit} (got ${JSON.stringify(metric.unit)})`,
    );
  };
  return {
    start_ns: metadata.request_start_ns,
    prompt_tokens: of("usage_prompt_tokens", "tokens") ?? of("input_sequence_length", "tokens"),
    output_tokens: of("usage_completion_tokens", "tokens") ?? of("output_sequence_length", "tokens"),
    cached_tokens: of("usage_prompt_cache_read_tokens", "tokens"),
    ttft_ms: of("time_to_first_token", "ms"),
    e2e_ms: of("request_latency", "ms"),
    status: (error === null || error === undefined) && metadata.was_cancelled !== true ? "" : "failed",
  };
}

interface Metric {
  readonly value?: unknown;
  readonly unit?: unknown;
}

/**
 * The requests of a detailed result of `vllm bench serve` by our names; null for a record that is none.
 *
 * @throws GuidevaneError `bad_log`
 */
export function vllmRecords(record: Named, place: Place): Named[] | null {
  if (!Array.isArray(record.ttfts) || !Array.isArray(record.itls)) return null;
  const lists = ["start_times", "input_lens", "output_lens", "ttfts", "itls"].map((name) => {
    const list = record[name];
    if (Array.isArray(list) && list.length === (record.ttfts as unknown[]).length) return list as unknown[];
    throw new GuidevaneError(
      "bad_log",
      `${place.file} line ${place.line}: ${name}: must be a list as long as ttfts (got ${Array.isArray(list) ? `${list.length} entries` : typeof list})`,
    );
  });
  const errors: unknown[] = Array.isArray(record.errors) ? record.errors : [];
  const [starts, prompts, outputs, ttfts, itls] = lists as [unknown[], unknown[], unknown[], number[], number[][]];
  return ttfts.map((ttft, at) => ({
    start_s: starts[at],
    prompt_tokens: prompts[at],
    output_tokens: outputs[at],
    ttft_s: ttft,
    e2e_s: itls[at]!.reduce((sum, each) => sum + each, ttft),
    model: record.model_id,
    error: errors[at] ?? "",
  }));
}

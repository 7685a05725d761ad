import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Reading } from "./dialect.ts";
import { read, total } from "./reading.fixture.ts";

const readVllm = (text: string): Reading => read("vllm", text);

describe("vLLM's dialect", () => {
  it("B120: adds the counts of data-parallel ranks and averages their fractions", () => {
    const { signals, counters } = readVllm(`
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 5
vllm:num_requests_waiting{engine="0",model_name="m"} 0
vllm:num_requests_waiting{engine="1",model_name="m"} 2
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
vllm:prompt_tokens_total{engine="0",model_name="m"} 100
vllm:prompt_tokens_total{engine="1",model_name="m"} 50
`);
    expect(signals).toMatchObject({ running: 8, waiting: 2, readyReplicas: "not-offered" });
    expect(signals.kvUsage).toBeCloseTo(0.4, 12);
    expect(counters.promptTokens.size).toBe(2);
    expect(total(counters.promptTokens)).toBe(150);
  });

  it("B119: tells a series that is not there from a zero", () => {
    expect(readVllm("vllm:num_requests_running 0\n").signals).toEqual({
      running: 0,
      waiting: "missing",
      kvUsage: "missing",
      readyReplicas: "not-offered",
    });
  });

  it.each(["NaN", "+Inf", "-1"])("B124: takes %s for no number, even when another rank has one", (value) => {
    const text = `vllm:num_requests_running{engine="0"} 4\nvllm:num_requests_running{engine="1"} ${value}\n`;
    expect(readVllm(text).signals.running).toBe("missing");
  });

  it("reads counters with and without _total, and never both", () => {
    const bare = readVllm('vllm:generation_tokens{engine="0"} 7\nvllm:request_success{engine="0"} 2\n');
    expect(total(bare.counters.generationTokens)).toBe(7);
    expect(total(bare.counters.successes)).toBe(2);
    const both = readVllm("vllm:generation_tokens 7\nvllm:generation_tokens_total 9\n");
    expect(total(both.counters.generationTokens)).toBe(9);
    expect(both.counters.promptTokens.size).toBe(0);
  });

  it("B119: reads the cache's fullness by its old name, and by the new one where both stand", () => {
    expect(readVllm("vllm:gpu_cache_usage_perc 0.3\n").signals.kvUsage).toBe(0.3);
    expect(readVllm("vllm:gpu_cache_usage_perc 0.3\nvllm:kv_cache_usage_perc 0.4\n").signals.kvUsage).toBe(0.4);
  });

  it("counts only those who wait for room where the page says why they wait", () => {
    const { waiting } = readVllm(`
vllm:num_requests_waiting 300
vllm:num_requests_waiting_by_reason{reason="capacity"} 4
vllm:num_requests_waiting_by_reason{reason="deferred"} 296
`).signals;
    expect(waiting).toBe(4);
  });

  it("reads ready replicas from engines that say them, zero included", () => {
    expect(readVllm("guidevane_emulator_ready_replicas 3\n").signals.readyReplicas).toBe(3);
    expect(readVllm("guidevane_emulator_ready_replicas 0\n").signals.readyReplicas).toBe(0);
  });

  it("B083: takes an engine that sleeps for one without a ready replica, until it wakes", () => {
    const page = (awake: string) =>
      readVllm(
        `vllm:engine_sleep_state{engine="0",sleep_state="awake"} ${awake}\n` +
          'vllm:engine_sleep_state{engine="0",sleep_state="weights_offloaded"} 0\n',
      ).signals.readyReplicas;
    expect([page("0.0"), page("1.0"), page("NaN")]).toEqual([0, "not-offered", "not-offered"]);
  });
});

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../../shared/data");
const hasData = existsSync(join(DATA, "metrics"));

/** Expected values were read off the recorded pages by eye. */
describe.skipIf(!hasData)(
  `recorded pages of vLLM${hasData ? "" : " (skipped: no recorded data; set GUIDEVANE_DATA)"}`,
  () => {
    const page = (path: string) => readVllm(readFileSync(join(DATA, path), "utf8"));

    it("gives the numbers of vLLM 0.32 under load", () => {
      const { signals, counters } = page("engines/vllm/metrics-load.txt");
      expect(signals).toEqual({ running: 8, waiting: 4, kvUsage: 0.4745098039215686, readyReplicas: "not-offered" });
      expect(total(counters.promptTokens)).toBe(3352);
      expect(total(counters.generationTokens)).toBe(3094);
      expect(counters.successes.size).toBe(5);
      expect(total(counters.successes)).toBe(20);
    });

    it("gives zeros, not missing ones, of an idle vLLM 0.32", () => {
      expect(page("engines/vllm/metrics-idle.txt").signals).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
    });

    it("gives the numbers of the v0 engine of 2024", () => {
      const { signals, counters } = page("metrics/vllm_v0_2024-06_full.txt");
      expect(signals).toEqual({ running: 0, waiting: 0, kvUsage: 0, readyReplicas: "not-offered" });
      expect(total(counters.promptTokens)).toBe(5);
      expect(total(counters.generationTokens)).toBe(7);
    });

    it("gives the numbers of vLLM 0.7", () => {
      const { signals, counters } = page("metrics/vllm_v0.7_2025-01_partial.txt");
      expect(signals).toEqual({ running: 0, waiting: 0, kvUsage: 0, readyReplicas: "not-offered" });
      expect(total(counters.promptTokens)).toBe(148);
      expect(total(counters.generationTokens)).toBe(955);
      expect(total(counters.successes)).toBe(4);
    });

    it("says missing for what a page of v1's new families leaves out", () => {
      const { signals, counters } = page("metrics/vllm_v1_families_trimmed.txt");
      expect(signals).toEqual({ running: "missing", waiting: "missing", kvUsage: 0, readyReplicas: "not-offered" });
      expect(counters.promptTokens.size).toBe(0);
    });
  },
);

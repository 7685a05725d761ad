import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { chat, get, killStarted, post, start, untilCounts } from "./emulated-engine.fixture.ts";

afterEach(killStarted);

describe("an emulated engine's metrics", () => {
  it("count tokens, ends and times", async () => {
    const engine = await start();
    await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 5 });
    await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 2, stream: true });
    await post(engine, "/v1/completions", { model: "tiny", prompt: "Hi" });
    await untilCounts(engine, ({ finished }) => finished === 3);
    const { text } = await get(engine, "/metrics");
    expect(text).toContain('vllm:generation_tokens_total{engine="0",model_name="tiny"} 10\n');
    expect(text).toContain('vllm:prompt_tokens_total{engine="0",model_name="tiny"} 7\n');
    expect(text).toContain('finished_reason="length",engine="0",model_name="tiny"} 2\n');
    expect(text).toContain('finished_reason="stop",engine="0",model_name="tiny"} 1\n');
    expect(text).toContain('vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 3\n');
    expect(text).toContain('vllm:time_to_first_token_seconds_bucket{engine="0",model_name="tiny",le="+Inf"} 3\n');
    expect(text).toContain('vllm:inter_token_latency_seconds_count{engine="0",model_name="tiny"} 7\n');
  });

  const recorded = `${process.env.GUIDEVANE_DATA ?? fileURLToPath(new URL("../../../../shared/data", import.meta.url))}/engines/vllm/metrics-load.txt`;
  it.skipIf(!existsSync(recorded))(
    "have the names, types and buckets of a real vLLM's (skipped without the recorded page)",
    async () => {
      const engine = await start();
      const ours = (await get(engine, "/metrics")).text
        .split("\n")
        .filter((line) => !line.includes("guidevane_emulator"));
      const real = readFileSync(recorded, "utf8");
      const types = ours.filter((line) => line.startsWith("# TYPE"));
      expect(types.length).toBeGreaterThan(8);
      for (const line of types) expect(real).toContain(`${line}\n`);
      const bounds = (text: string, name: string) =>
        [...text.matchAll(new RegExp(`^${name}_bucket\\{.*le="([^"]+)"`, "gm"))].map((match) => match[1]);
      for (const name of ["time_to_first_token", "inter_token_latency", "e2e_request_latency"].map(
        (each) => `vllm:${each}_seconds`,
      )) {
        expect(bounds(ours.join("\n"), name)).toEqual(bounds(real, name));
      }
    },
  );
});

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { fileURLToPath } from "node:url";
import { GENERIC_PROFILE, ManualClock, type Profile } from "@guidevane/core";
import { dialectOf, parsePrometheusText } from "@guidevane/signals";
import { afterEach, describe, expect, it } from "vitest";
import { emulatedEmbedding, emulatedWords } from "./answer-text.ts";
import { type EmulatedEngine, startEmulatedEngine } from "./emulated-engine.ts";
import type { EmulatedEngineOptions } from "./engine-server.ts";

const quick: Profile = {
  ...GENERIC_PROFILE,
  reference: { promptTokens: 4, outputTokens: 3 },
  work: { prefillPerKtok: 100, decodePerKtok: 200 },
  prefillMsPerTok: 0,
  capacityWps: 1000,
  ttftMs: [[0, 2]],
  tbotMs: [[0, 1]],
};
/** Answers after an hour, so that what a test does to it comes first. */
const slow: Profile = { ...quick, ttftMs: [[0, 3_600_000]] };

const started: EmulatedEngine[] = [];

async function start(options: Partial<EmulatedEngineOptions> = {}): Promise<EmulatedEngine> {
  const engine = await startEmulatedEngine({ profile: quick, models: ["tiny", "other"], ...options });
  started.push(engine);
  return engine;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((engine) => engine.kill()));
});

const chat = { model: "tiny", messages: [{ role: "user", content: "Hello there" }] };

async function post(
  engine: EmulatedEngine,
  path: string,
  body: unknown,
): Promise<{ status: number; headers: Headers; text: string }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${engine.url}${path}`, { method: "POST", body: text });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function get(engine: EmulatedEngine, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${engine.url}${path}`);
  return { status: response.status, text: await response.text() };
}

function events(text: string): string[] {
  return text
    .split("\n\n")
    .filter((each) => each !== "")
    .map((each) => each.replace(/^data: /, ""));
}

describe("an emulated engine's answers", () => {
  it("says the words that its prompt stands for, as many as were asked for", async () => {
    const engine = await start();
    const { status, text } = await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 5 });
    const answer = JSON.parse(text);
    expect(status).toBe(200);
    expect(answer.choices[0].message.content).toBe(emulatedWords("Hello there", 5).join(""));
    expect(answer.choices[0].message.content.split(" ")).toHaveLength(5);
    expect(answer.choices[0].finish_reason).toBe("length");
    // 11 bytes are 3 tokens.
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 });
    expect(answer.model).toBe("tiny");
  });

  it("stops by itself after the reference's tokens where no limit was set", async () => {
    const engine = await start();
    const { text } = await post(engine, "/v1/completions", { model: "tiny", prompt: "Hello there" });
    const answer = JSON.parse(text);
    expect(answer.object).toBe("text_completion");
    expect(answer.choices[0]).toMatchObject({ text: emulatedWords("Hello there", 3).join(""), finish_reason: "stop" });
  });

  it("gives different prompts different words", () => {
    expect(emulatedWords("Hello there", 12)).not.toEqual(emulatedWords("Hello there!", 12));
  });

  it("streams the same words, role first, then usage where asked for, then [DONE]", async () => {
    const engine = await start();
    const body = { ...chat, max_tokens: 4, stream: true, stream_options: { include_usage: true } };
    const { headers, text } = await post(engine, "/v1/chat/completions", body);
    const lines = events(text);
    expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(lines.at(-1)).toBe("[DONE]");
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line));
    expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      emulatedWords("Hello there", 4).join(""),
    );
    expect(chunks.at(-2).choices[0].finish_reason).toBe("length");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } });
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  it("streams completions without a role or usage that nobody asked for", async () => {
    const engine = await start();
    const { text } = await post(engine, "/v1/completions", {
      model: "tiny",
      prompt: "Hi",
      max_tokens: 2,
      stream: true,
    });
    const lines = events(text);
    expect(lines.at(-1)).toBe("[DONE]");
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line));
    expect(chunks.map((chunk) => chunk.choices[0].text)).toEqual([...emulatedWords("Hi", 2), ""]);
  });

  it("sends a stream's head before its first token", async () => {
    const engine = await start({ profile: slow });
    const { response, sent } = await openStream(engine);
    expect(response.statusCode).toBe(200);
    sent.destroy();
  });

  it("takes at least TTFT + tokens·TBOT, whole or streamed", async () => {
    const engine = await start({ profile: { ...quick, ttftMs: [[0, 20]], tbotMs: [[0, 5]] } });
    for (const stream of [false, true]) {
      const before = performance.now();
      await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 6, stream });
      expect(performance.now() - before).toBeGreaterThanOrEqual(50);
    }
  });

  it("embeds as floats or as base64 of the same floats", async () => {
    const engine = await start();
    const floats = JSON.parse((await post(engine, "/v1/embeddings", { model: "tiny", input: ["a", "b"] })).text);
    const packed = JSON.parse(
      (await post(engine, "/v1/embeddings", { model: "tiny", input: "b", encoding_format: "base64" })).text,
    );
    expect(floats.data.map((each: { index: number }) => each.index)).toEqual([0, 1]);
    expect(floats.data[1].embedding).toEqual(emulatedEmbedding("b", 16));
    expect(Math.hypot(...floats.data[1].embedding)).toBeCloseTo(1, 9);
    const bytes = Buffer.from(packed.data[0].embedding, "base64");
    const unpacked = Array.from({ length: 16 }, (_, index) => bytes.readFloatLE(4 * index));
    for (const [index, value] of unpacked.entries()) expect(value).toBeCloseTo(floats.data[1].embedding[index], 6);
  });

  it("lists its models", async () => {
    const engine = await start();
    const { data } = JSON.parse((await get(engine, "/v1/models")).text);
    expect(data.map((each: { id: string }) => each.id)).toEqual(["tiny", "other"]);
  });
});

describe("what an emulated engine refuses", () => {
  it.each([
    ["a body that is not JSON", "/v1/chat/completions", "{", 400],
    ["a chat without messages", "/v1/chat/completions", { model: "tiny" }, 400],
    ["a completion without a prompt", "/v1/completions", { model: "tiny" }, 400],
    ["a model that it has not", "/v1/chat/completions", { ...chat, model: "nope" }, 404],
    ["no tokens", "/v1/chat/completions", { ...chat, max_tokens: 0 }, 400],
    ["an embedding of numbers", "/v1/embeddings", { model: "tiny", input: 7 }, 400],
    ["a path that it has not", "/v1/nothing", {}, 404],
  ])("is %s", async (_what, path, body, status) => {
    const engine = await start();
    const answer = await post(engine, path, body);
    expect(answer.status).toBe(status);
    expect(engine.counts.admitted).toBe(0);
    if (path !== "/v1/nothing") expect(JSON.parse(answer.text).error.code).toBe(status);
  });
});

/** Opens a chat stream and waits for its head. */
async function openStream(engine: EmulatedEngine): Promise<{ sent: ClientRequest; response: IncomingMessage }> {
  const sent = request(`${engine.url}/v1/chat/completions`, { method: "POST" });
  sent.on("error", () => sent.destroy());
  sent.end(JSON.stringify({ ...chat, max_tokens: 8, stream: true }));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { sent, response };
}

function untilCounts(engine: EmulatedEngine, want: (counts: EmulatedEngine["counts"]) => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (want(engine.counts)) return resolve();
    const stop = engine.watch((counts) => {
      if (!want(counts)) return;
      stop();
      resolve();
    });
  });
}

describe("a client that goes", () => {
  it.each([false, true])("frees its place at once (stream: %s)", async (stream) => {
    const engine = await start({ profile: slow });
    const sent = request(`${engine.url}/v1/chat/completions`, { method: "POST" });
    sent.on("error", () => sent.destroy());
    sent.end(JSON.stringify({ ...chat, stream }));
    await untilCounts(engine, ({ inFlight }) => inFlight === 1);
    expect(engine.model.utilisation()).toBeGreaterThan(0);
    sent.destroy();
    await untilCounts(engine, ({ inFlight }) => inFlight === 0);
    expect(engine.counts).toMatchObject({ admitted: 1, finished: 0, aborted: 1 });
    // Nothing of its work was done, and all of it is given back.
    expect(engine.model.utilisation()).toBeLessThan(1e-6);
    expect((await get(engine, "/metrics")).text).toContain(
      'request_success_total{finished_reason="abort",engine="0",model_name="tiny"} 1',
    );
  });
});

describe("an emulated engine's metrics", () => {
  it("are what vLLM's dialect reads", async () => {
    const engine = await start({ profile: slow, replicas: 2 });
    const open = [await openStream(engine), await openStream(engine)];
    await untilCounts(engine, ({ inFlight }) => inFlight === 2);
    const dialect = dialectOf("vllm")!;
    const page = parsePrometheusText((await get(engine, "/metrics")).text, (name) => dialect.wants(name));
    const { signals } = dialect.read(page);
    // Two prompts of 3 tokens, of the room that full load holds.
    const room = 1.25 * 2 * 1000 * (3_600_000 + 3) * 1e-3 * 7;
    expect(signals).toMatchObject({ running: 2, waiting: 0, readyReplicas: 2 });
    expect(signals.kvUsage).toBeCloseTo(6 / room, 12);
    for (const { sent } of open) sent.destroy();
  });

  it("show as waiting what queues beyond the engine's capacity, until it is begun", async () => {
    const clock = new ManualClock();
    const engine = await start({ clock, profile: { ...slow, capacityWps: 10 } });
    for (let i = 0; i < 200; i++) {
      engine.model.admit({ promptTokens: 5, outputTokens: 2.5 });
      clock.advance(50);
    }
    expect(engine.model.backlog).toBeGreaterThan(20);
    const { sent } = await openStream(engine);
    expect((await get(engine, "/metrics")).text).toContain(
      'vllm:num_requests_waiting{engine="0",model_name="tiny"} 1\n',
    );
    clock.advance(60_000);
    const { text } = await get(engine, "/metrics");
    expect(text).toContain('vllm:num_requests_waiting{engine="0",model_name="tiny"} 0\n');
    expect(text).toContain('vllm:num_requests_running{engine="0",model_name="tiny"} 1\n');
    sent.destroy();
  });

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

describe("what a test can make it do", () => {
  it("is unhealthy on demand", async () => {
    const engine = await start();
    expect((await get(engine, "/health")).status).toBe(200);
    engine.control({ health: 500 });
    expect((await get(engine, "/health")).status).toBe(500);
  });

  it("serves nothing without ready replicas", async () => {
    const engine = await start();
    const { status } = await post(engine, "/emulator", { readyReplicas: 0 });
    expect(status).toBe(200);
    expect((await get(engine, "/health")).status).toBe(503);
    expect((await post(engine, "/v1/chat/completions", chat)).status).toBe(503);
    expect((await get(engine, "/metrics")).text).toContain(
      'guidevane_emulator_ready_replicas{engine="0",model_name="tiny"} 0',
    );
  });

  it("refuses with a status and Retry-After", async () => {
    const engine = await start();
    engine.control({ answerStatus: 429, retryAfterS: 7 });
    const answer = await post(engine, "/v1/chat/completions", chat);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "7"]);
  });

  it("cuts streams after so many tokens", async () => {
    const engine = await start();
    engine.control({ breakAfterTokens: 2 });
    const { response } = await openStream(engine);
    let text = "";
    response.on("data", (chunk) => {
      text += chunk;
    });
    const [error] = await once(response, "error");
    expect((error as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    expect(text).not.toContain("[DONE]");
  });

  it("takes requests and never answers while it hangs", async () => {
    const engine = await start();
    engine.control({ hang: true });
    const { sent } = await openStream(engine);
    expect(engine.counts.inFlight).toBe(1);
    sent.destroy();
    await untilCounts(engine, ({ aborted }) => aborted === 1);
  });

  it("refuses a control that it does not know", async () => {
    const engine = await start();
    const { status, text } = await post(engine, "/emulator", { helth: 200 });
    expect(status).toBe(400);
    expect(text).toContain("helth");
  });

  it("is gone at once when killed: open streams break, the port refuses", async () => {
    const engine = await start({ profile: slow });
    const { response } = await openStream(engine);
    const broken = once(response, "error");
    await engine.kill();
    expect(((await broken)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    await expect(get(engine, "/health")).rejects.toThrow("fetch failed");
  });

  it("tells of each request as it came", async () => {
    const seen: string[] = [];
    const engine = await start({
      onRequest: ({ method, path, body }) => seen.push(`${method} ${path} ${body.length}`),
    });
    await post(engine, "/v1/nothing", "12345");
    expect(seen).toEqual(["POST /v1/nothing 5"]);
  });
});

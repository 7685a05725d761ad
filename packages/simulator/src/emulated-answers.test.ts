import { afterEach, describe, expect, it } from "vitest";
import { emulatedEmbedding, emulatedWords } from "./answer-text.ts";
import { chat, events, get, killStarted, openStream, post, quick, slow, start } from "./emulated-engine.fixture.ts";

afterEach(killStarted);

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

  it.each([
    [400, "/v1/chat/completions", { max_tokens: 1e9 }],
    [400, "/v1/chat/completions", { max_completion_tokens: 1e308 }],
    [400, "/v1/chat/completions", { max_tokens: { toString: 1 } }],
    [400, "/v1/embeddings", { input: "x", dimensions: { toString: 1 } }],
    [200, "/v1/chat/completions", { messages: [{ role: "user", content: [{ text: { toString: 1 } }] }] }],
    [400, "/v1/completions", { prompt: "x", max_tokens: "DEEP" }],
  ])("answers %s, and goes on, where a client asks %s for %j", async (status, path, more) => {
    const engine = await start();
    const body = JSON.stringify({ ...chat, ...more }).replace('"DEEP"', "[".repeat(20_000) + "]".repeat(20_000));
    expect((await fetch(engine.url + path, { method: "POST", body })).status).toBe(status);
    expect((await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 1 })).status).toBe(200);
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

import type { ReceivedRequest } from "@guidevane/simulator";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineHas, type Gateway, MODEL, Whole } from "./whole.ts";

/** The request path, end to end: the `openai` package, a gateway process, an engine. */

const whole = new Whole();
const received: ReceivedRequest[] = [];
let engine: Awaited<ReturnType<Whole["engine"]>>;
let gateway: Gateway;
let direct: OpenAI;

beforeAll(async () => {
  engine = await whole.engine({ onRequest: (request) => request.method === "POST" && received.push(request) });
  whole.writeFleet({ one: { url: engine.url } }, { gateway: { limits: { bodyBytes: 100_000 } } });
  const control = await whole.control();
  gateway = await whole.gateway(control.url);
  await gateway.hasSnapshot();
  direct = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: "unused", maxRetries: 0 });
});
afterAll(() => whole.stop());

const messages = [{ role: "user" as const, content: "Say something, please." }];

describe("an answer through the gateway", () => {
  it("says the same as the engine itself, not streaming", async () => {
    const request = { model: MODEL, messages, max_tokens: 12 };
    const [through, straight] = [
      await gateway.client.chat.completions.create(request),
      await direct.chat.completions.create(request),
    ];
    expect(through.choices).toEqual(straight.choices);
    expect(through.usage).toEqual(straight.usage);
    expect(through.choices[0]!.message.content!.length).toBeGreaterThan(0);
  });

  it("says the same as the engine itself, streaming, token by token", async () => {
    const request = { model: MODEL, messages, max_tokens: 12, stream: true as const };
    const read = async (client: OpenAI) => {
      const parts: (string | null | undefined)[] = [];
      for await (const chunk of await client.chat.completions.create(request))
        parts.push(chunk.choices[0]?.delta.content);
      return parts;
    };
    const [through, straight] = [await read(gateway.client), await read(direct)];
    expect(through).toEqual(straight);
    expect(through.length).toBeGreaterThan(10);
  });

  it("comes before the engine has ended: the first token does not wait for the last", async () => {
    const startMs = performance.now();
    const stream = await gateway.client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 300,
      stream: true,
    });
    let firstMs = 0;
    for await (const chunk of stream) {
      if (firstMs === 0 && chunk.choices[0]?.delta.content) firstMs = performance.now() - startMs;
    }
    expect(firstMs).toBeGreaterThan(0);
    // 300 tokens take 600 ms and more; the first takes 20.
    expect(firstMs).toBeLessThan((performance.now() - startMs) / 2);
  });

  it("has the request's bytes reach the engine as they were sent", async () => {
    const body = `{ "model" : "${MODEL}",\n  "messages":[{"role":"user","content":"h\\u00e9 \u{1f98a}"}], "max_tokens":1, "unknown": [1,2.50,{}] }`;
    received.length = 0;
    expect((await gateway.post(body)).status).toBe(200);
    expect(received.map((request) => request.body.toString())).toEqual([body]);
  });

  it("works for completions, embeddings and the list of models", async () => {
    const completion = await gateway.client.completions.create({ model: MODEL, prompt: "Once", max_tokens: 4 });
    expect(completion.choices[0]!.text.length).toBeGreaterThan(0);
    const embedding = await gateway.client.embeddings.create({ model: MODEL, input: "Once", encoding_format: "float" });
    expect(embedding.data[0]!.embedding.length).toBeGreaterThan(0);
    const models = await gateway.client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual([MODEL]);
  });

  it("says which engine gave it, by which snapshot, and why", async () => {
    const { response } = await gateway.client.chat.completions
      .create({ model: MODEL, messages, max_tokens: 1 })
      .withResponse();
    expect(response.headers.get("x-guidevane-engine")).toBe("one");
    expect(Number(response.headers.get("x-guidevane-snapshot"))).toBeGreaterThan(0);
    expect(response.headers.get("x-guidevane-reason")).toBe("home");
    expect(response.headers.get("x-guidevane-key-source")).toBe("prompt");
    expect(response.headers.get("x-request-id")).toMatch(/^[\da-f]{8}-[\da-f]{4}-7/);
  });

  it("never has the client's key reach the engine, and keeps the client's request id", async () => {
    received.length = 0;
    const answer = await gateway.post(
      { model: MODEL, messages, max_tokens: 1 },
      { authorization: "Bearer secret", "x-request-id": "mine-1", "x-guidevane-class": "chat" },
    );
    expect(answer.headers.get("x-request-id")).toBe("mine-1");
    expect(received[0]!.headers["x-request-id"]).toBe("mine-1");
    expect(JSON.stringify(received[0]!.headers)).not.toContain("secret");
    expect(Object.keys(received[0]!.headers).filter((name) => name.startsWith("x-guidevane"))).toEqual([]);
  });
});

describe("a client that goes away", () => {
  it("in prefill leaves the engine idle within a second", async () => {
    engine.control({ hang: true });
    const abort = new AbortController();
    const call = gateway.client.chat.completions.create(
      { model: MODEL, messages, max_tokens: 5, stream: true },
      { signal: abort.signal },
    );
    const failed = expect(call).rejects.toThrow(OpenAI.APIUserAbortError);
    await engineHas(engine, 1);
    abort.abort();
    expect(await engineHas(engine, 0)).toBeLessThan(1000);
    await failed;
    engine.control({ hang: false });
  });

  it("in the middle of a stream leaves the engine idle within a second", async () => {
    const stream = await gateway.client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 5000,
      stream: true,
    });
    let tokens = 0;
    let took = 0;
    for await (const chunk of stream) {
      if (!chunk.choices[0]?.delta.content || ++tokens < 5) continue;
      const idle = engineHas(engine, 0);
      stream.controller.abort();
      took = await idle;
      break;
    }
    expect(tokens).toBe(5);
    expect(took).toBeLessThan(1000);
    expect(engine.counts.inFlight).toBe(0);
  });

  it("while it waits for a whole answer leaves the engine idle within a second", async () => {
    const abort = new AbortController();
    const call = gateway.client.chat.completions.create(
      { model: MODEL, messages, max_tokens: 5000 },
      { signal: abort.signal },
    );
    const failed = expect(call).rejects.toThrow(OpenAI.APIUserAbortError);
    await engineHas(engine, 1);
    abort.abort();
    expect(await engineHas(engine, 0)).toBeLessThan(1000);
    await failed;
  });
});

describe("a bad request gets an error of OpenAI's shape, and no engine sees it", () => {
  const chat = "/v1/chat/completions";
  const good = JSON.stringify({ model: MODEL, messages });
  const cases: readonly [string, string, string, string | undefined, number, string | null][] = [
    ["that is not JSON", "POST", chat, "{", 400, null],
    ["that is a list", "POST", chat, "[]", 400, null],
    ["for an unknown model", "POST", chat, JSON.stringify({ model: "ghost", messages }), 404, "model_not_found"],
    [
      "over the body limit",
      "POST",
      chat,
      JSON.stringify({ model: MODEL, messages, pad: "x".repeat(100_001) }),
      413,
      null,
    ],
    ["with a wrong method", "PUT", chat, good, 405, null],
    ["for an unknown path", "POST", "/v1/nothing", good, 404, null],
    ["for a path that climbs", "POST", "/v1/%2e%2e/emulator", good, 404, null],
  ];

  it.each(cases)("%s", async (_what, method, path, body, status, code) => {
    received.length = 0;
    const answer = await fetch(gateway.url + path, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    });
    const { error } = (await answer.json()) as { error: Record<string, unknown> };
    expect(answer.status).toBe(status);
    expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
    if (code !== null) expect(error.code).toBe(code);
    if (status === 405) expect(answer.headers.get("allow")).toMatch(/POST/);
    expect(received).toEqual([]);
  });

  it("which the client's library raises as its own error", async () => {
    const call = gateway.client.chat.completions.create({ model: "ghost", messages });
    await expect(call).rejects.toThrow(OpenAI.NotFoundError);
  });

  it("but one that names no model goes to the fleet's only one", async () => {
    expect((await gateway.post({ messages, max_tokens: 1 })).status).toBe(200);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn, type RawAnswer, type RawClient } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK, type ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { createSetup } from "./testing/setup.ts";

const setup = createSetup(afterAll);

/** Every API that is passed on, with a body of its own and the dialect of its errors. */
const APIS = [
  ["/v1/chat/completions", { messages: [{ role: "user", content: "é" }] }, "openai"],
  ["/v1/completions", { prompt: "é" }, "openai"],
  ["/v1/responses", { input: [{ role: "user", content: [{ type: "input_text", text: "é" }] }] }, "openai"],
  ["/v1/messages", { max_tokens: 9, system: "s", messages: [{ role: "user", content: "é" }] }, "anthropic"],
  ["/v1/messages/count_tokens", { messages: [{ role: "user", content: "é" }] }, "anthropic"],
  ["/v1/embeddings", { input: ["é", "b"] }, "openai"],
  ["/v1/rerank", { query: "é", documents: ["b", "c"] }, "openai"],
  ["/v1/score", { text_1: "é", text_2: ["b"] }, "openai"],
  ["/tokenize", { prompt: "é" }, "openai"],
  ["/detokenize", { tokens: [1, 2] }, "openai"],
] as const;

let engine: ScriptedEngine;
let gateway: Gateway;
let client: RawClient;

beforeAll(async () => {
  engine = await setup.engine(({ body, socket }) => {
    if (body.includes('"stream":true'))
      socket.write(
        Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: {}\n\ndata: [DONE]\n\n"), Buffer.from(LAST_CHUNK)]),
      );
    else socket.write(jsonAnswer('{"fine":1}'));
  });
  gateway = await setup.before({ a: engine });
  client = await setup.client(gateway);
});

function errorOf(answer: RawAnswer): Record<string, unknown> {
  expect(headerIn(answer, "content-type")).toBe("application/json");
  return JSON.parse(answer.body.toString()) as Record<string, unknown>;
}

describe.each(APIS)("POST %s", (path, fields, dialect) => {
  it("goes to an engine as it is, and so does its answer", async () => {
    const body = JSON.stringify({ model: "m", ...fields });
    client.post(`${path}?beta=true`, body);
    const answer = await client.answer();
    expect([answer.status, answer.body.toString()]).toEqual([200, '{"fine":1}']);
    expect(headerIn(answer, "x-guidevane-engine")).toBe("a");
    const seen = engine.requests.at(-1)!;
    expect([seen.requestLine, seen.body.toString()]).toEqual([`POST ${path}?beta=true HTTP/1.1`, body]);
  });

  it("streams where the body asks for it", async () => {
    client.post(path, JSON.stringify({ model: "m", ...fields, stream: true }));
    const answer = await client.answer();
    expect(headerIn(answer, "content-type")).toMatch(/^text\/event-stream/);
    expect(answer.body.toString()).toBe("data: {}\n\ndata: [DONE]\n\n");
  });

  it("is refused in the words of its API, with a code that says why", async () => {
    client.post(path, JSON.stringify({ model: "nope", ...fields }), { "x-request-id": "req-1" });
    const answer = await client.answer();
    expect([answer.status, headerIn(answer, "x-request-id")]).toEqual([404, "req-1"]);
    const message = 'the model "nope" does not exist here';
    expect(errorOf(answer)).toEqual(
      dialect === "anthropic"
        ? { type: "error", error: { type: "not_found_error", message }, request_id: "req-1" }
        : { error: { message, type: "invalid_request_error", param: "model", code: "model_not_found" } },
    );
  });
});

describe("a path below one that there is", () => {
  it.each([
    ["/v1/messages/batches", "anthropic"],
    ["/v1/responses/resp_1", "openai"],
    ["/v1/chat/completions/", "openai"],
    ["/tokenize/x", "openai"],
  ])("%s is not there, said as its API says it", async (path, dialect) => {
    const own = await setup.client(gateway);
    own.post(path, "{}");
    const answer = await own.answer();
    const error = errorOf(answer);
    expect(answer.status).toBe(404);
    expect(error.error).toMatchObject(dialect === "anthropic" ? { type: "not_found_error" } : { code: "not_found" });
  });
});

describe("the list of models", () => {
  let asking: RawClient;
  beforeAll(async () => {
    asking = await setup.client(await setup.gateway(await fleetOf({ a: engine.url }, "", "", '[org/name, "x:13b"]')));
  });

  const get = async (target: string, headers = ""): Promise<[number, unknown]> => {
    asking.send(`GET ${target} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`);
    const answer = await asking.answer();
    return [answer.status, JSON.parse(answer.body.toString())];
  };

  it.each([
    ["org/name", "org/name"],
    ["org%2Fname", "org/name"],
    ["org%2fname", "org/name"],
    ["x:13b", "x:13b"],
    ["x%3A13b?a=b", "x:13b"],
  ])("B048: gives one of them by its name, written as %s", async (name, id) => {
    expect(await get(`/v1/models/${name}`)).toEqual([
      200,
      { id, object: "model", created: expect.any(Number), owned_by: "guidevane" },
    ]);
  });

  it.each(["name", "org", "org%252Fname", "org//name", "../models", "%2e%2e", "", "org/name/"])(
    "B048: has no model %j",
    async (name) => {
      const [status, body] = await get(`/v1/models/${name}`);
      expect([status, (body as { error: { code: string } }).error.code]).toEqual([404, "model_not_found"]);
    },
  );

  it("has Anthropic's shape for Anthropic's clients", async () => {
    const shape = (id: string) => ({
      ...{ type: "model", id, display_name: id },
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    const version = "anthropic-version: 2023-06-01\r\n";
    expect(await get("/v1/models?limit=20", version)).toEqual([
      200,
      { data: [shape("org/name"), shape("x:13b")], has_more: false, first_id: "org/name", last_id: "x:13b" },
    ]);
    expect(await get("/v1/models/org/name", version)).toEqual([200, shape("org/name")]);
    const [status, body] = await get("/v1/models/y", version);
    expect([status, body]).toMatchObject([404, { type: "error", error: { type: "not_found_error" } }]);
  });

  it("is refused where the escape in a name is broken", async () => {
    const own = await setup.client(gateway);
    own.send("GET /v1/models/%zz HTTP/1.1\r\nhost: x\r\n\r\n");
    expect((await own.answer()).status).toBe(400);
  });
});

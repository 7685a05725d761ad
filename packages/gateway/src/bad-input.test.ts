import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn, type RawAnswer, type RawClient } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, type ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

async function start(extra = "gateway: { limits: { bodyBytes: 1000, headBytes: 2048 } }"): Promise<{
  engine: ScriptedEngine;
  gateway: Gateway;
  client: RawClient;
}> {
  const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  const gateway = await setup.before({ a: engine }, extra);
  return { engine, gateway, client: await setup.client(gateway) };
}

/** Status and code; the whole error must be of OpenAI's shape. */
function refusal(answer: RawAnswer): [number, string] {
  expect(headerIn(answer, "content-type")).toBe("application/json");
  const { error, ...rest } = JSON.parse(answer.body.toString()) as { error: Record<string, unknown> };
  expect(rest).toEqual({});
  expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(error.message).not.toBe("");
  return [answer.status, String(error.code)];
}

describe("a bad body", () => {
  it.each([
    ["not JSON", "hello", 400, "invalid_json"],
    ["empty", "", 400, "invalid_json"],
    ["an array", '[{"model":"m"}]', 400, "invalid_json"],
    ["cut off", '{"model":"m","messages":[', 400, "invalid_json"],
    ["not UTF-8", Buffer.from('{"model":"m","x":"\xff"}', "latin1"), 400, "invalid_json"],
    ["of an unknown model", '{"model":"nope","messages":[]}', 404, "model_not_found"],
    ["over the limit", `{"model":"m","x":"${"y".repeat(2000)}"}`, 413, "body_too_large"],
  ])("B050: that is %s is refused, and no engine sees it", async (_what, body, status, code) => {
    const { engine, client } = await start();
    client.post(CHAT, body);
    const got = await client.answer();
    expect(refusal(got)).toEqual([status, code]);
    expect(headerIn(got, "x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(engine.requests).toEqual([]);
  });

  it("without a model is served where the fleet has one, and refused where it has two", async () => {
    const { engine, client } = await start();
    client.post(CHAT, '{"messages":[]}');
    expect((await client.answer()).status).toBe(200);
    const gateway = await setup.gateway(await fleetOf({ a: engine.url }, "", "", "[m, n]"));
    const two = await setup.client(gateway);
    two.post(CHAT, '{"messages":[]}');
    expect(refusal(await two.answer())).toEqual([400, "model_required"]);
    expect(engine.requests.length).toBe(1);
  });

  it("that needs what no engine has is refused with what ruled each out", async () => {
    const engine = await setup.engine();
    const fleet = await fleetOf({ a: engine.url }, "", ", capabilities: [tools]");
    const client = await setup.client(await setup.gateway(fleet));
    client.post(
      CHAT,
      '{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}',
    );
    const got = await client.answer();
    expect(refusal(got)).toEqual([503, "no_eligible_engine"]);
    expect(got.body.toString()).toContain("a: lacks vision");
    expect(Number(headerIn(got, "retry-after"))).toBeGreaterThanOrEqual(1);
    expect(engine.requests).toEqual([]);
  });

  it("that grows over the limit without having said so is refused, and the connection is closed", async () => {
    const { engine, client } = await start();
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    client.send(`400\r\n${"x".repeat(1024)}\r\n`);
    expect(refusal(await client.answer())).toEqual([413, "body_too_large"]);
    client.send("0\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    await client.closed;
    expect(client.received.toString()).toBe("");
    expect(engine.requests).toEqual([]);
  });

  it("that is far over the limit and sent all the same is refused, not reset", async () => {
    const { engine, client } = await start();
    client.post(CHAT, Buffer.alloc(16 * 1024 * 1024, "x"));
    expect(refusal(await client.answer())).toEqual([413, "body_too_large"]);
    await client.closed;
    expect(engine.requests).toEqual([]);
  });

  it("B182: that inflates over the limit is refused while inflating", async () => {
    const { engine, client } = await start();
    client.post(CHAT, gzipSync(`{"model":"m","x":"${"y".repeat(100_000)}"}`), { "content-encoding": "gzip" });
    expect(refusal(await client.answer())).toEqual([413, "body_too_large"]);
    expect(engine.requests).toEqual([]);
  });

  it("B037: in an encoding that can't be read is refused", async () => {
    const { engine, client } = await start();
    client.post(CHAT, PLAIN_BODY, { "content-encoding": "gzip" });
    expect(refusal(await client.answer())).toEqual([400, "invalid_encoding"]);
    client.post(CHAT, PLAIN_BODY, { "content-encoding": "deflate" });
    expect(refusal(await client.answer())).toEqual([415, "unsupported_encoding"]);
    expect(engine.requests).toEqual([]);
  });

  it("that never comes is given up after its time", async () => {
    const { engine, client } = await start("gateway: { limits: { bodyMs: 50 } }");
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf`);
    expect(refusal(await client.answer())).toEqual([408, "request_timeout"]);
    await client.closed;
    expect(engine.requests).toEqual([]);
  });
});

describe("a bad head", () => {
  it.each([
    ["GET", CHAT, 405],
    ["PUT", CHAT, 405],
    ["DELETE", "/v1/models", 405],
    ["POST", "/v1/models", 405],
    ["OPTIONS", CHAT, 405],
    ["TRACE", CHAT, 405],
    ["PATCH", "/v1/embeddings", 405],
  ])("with method %s on %s is answered 405 with what is allowed", async (method, path, status) => {
    const { engine, client } = await start();
    client.send(`${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`);
    const got = await client.answer();
    expect(refusal(got)).toEqual([status, "method_not_allowed"]);
    expect(headerIn(got, "allow")).toBe(path === "/v1/models" ? "GET, HEAD" : "POST");
    expect(engine.requests).toEqual([]);
  });

  it.each([
    "/",
    "/v1",
    "/v1/chat/completions/",
    "/V1/chat/completions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/../v1/chat/completions",
    "/v1/%2e%2e/metrics",
    "/v1/chat%2fcompletions",
    "/v1\\chat\\completions",
    "/%zz",
    "/metrics",
    "http://elsewhere/v1/chat/completions",
    `${CHAT}?x=%zz`,
  ])("B184: with the path %s is refused, and no engine sees it", async (path) => {
    const { engine, client } = await start();
    client.post(path, PLAIN_BODY);
    const [status] = refusal(await client.answer());
    expect([400, 404]).toContain(status);
    expect(engine.requests).toEqual([]);
  });

  it("B053: that is too large is answered 431", async () => {
    const { engine, client } = await start();
    client.post(CHAT, PLAIN_BODY, { "x-large": "x".repeat(4096) });
    expect(refusal(await client.answer())).toEqual([431, "headers_too_large"]);
    await client.closed;
    expect(engine.requests).toEqual([]);
  });

  it.each([
    [
      "both framings",
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["two lengths", `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcd`],
    ["a signed length", `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: +4\r\n\r\nabcd`],
    ["a chunk of no size", `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n\r\n`],
    [
      "a transfer coding beyond chunks",
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "a transfer coding that is none",
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n`,
    ],
    ["no host", `POST ${CHAT} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}`],
    ["two hosts", `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nhost: y\r\ncontent-length: 2\r\n\r\n{}`],
    ["no HTTP", "hello\r\n\r\n"],
  ])("with %s is answered 400 and closed", async (_what, bytes) => {
    const { engine, client } = await start();
    client.send(bytes);
    expect(refusal(await client.answer())[0]).toBe(400);
    await client.closed;
    expect(engine.requests).toEqual([]);
  });

  it.each(["HTTP/2.0", "HTTP/0.9"])("of %s is answered 505 and closed", async (version) => {
    const { engine, client } = await start();
    client.send(`POST ${CHAT} ${version}\r\nhost: x\r\ncontent-length: 15\r\n\r\n{"model": "m" }`);
    expect(refusal(await client.answer())).toEqual([505, "invalid_request_line"]);
    await client.closed;
    expect(engine.requests).toEqual([]);
  });

  it("behind one whose refusal closes the connection goes to no engine", async () => {
    const { engine, gateway, client } = await start();
    const next = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 13\r\n\r\n{"model":"m"}`;
    client.send(`POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}${next}${next}`);
    expect(refusal(await client.answer())).toEqual([404, "not_found"]);
    await client.closed;
    expect(client.received.length).toBe(0);
    expect(engine.requests).toEqual([]);
    expect(await metric(gateway, 'guidevane_requests_total{class="other",outcome="rejected"}')).toBe(1);
    for (const series of ['class="m",outcome="cancelled"', 'class="other",outcome="cancelled"'])
      expect(await metric(gateway, `guidevane_requests_total{${series}}`)).toBe(0);
  });

  it("behind a request whose answer has begun closes the connection without a word into that answer", async () => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")])),
    );
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, '{"model":"m","stream":true,"messages":[]}');
    await client.until("data: 1");
    client.send("hello\r\n\r\n");
    await client.closed;
    expect(client.received.toString()).toMatch(/data: 1\n\n\r\n$/);
  });

  it("behind a request whose answer is still to come is not answered in its place", async () => {
    const engine = await setup.engine();
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, PLAIN_BODY);
    await engine.next();
    client.send("hello\r\n\r\n");
    await client.closed;
    expect(client.received.length).toBe(0);
  });

  it("that wants to upgrade is refused", async () => {
    const { engine, client } = await start();
    client.send(
      `GET ${CHAT} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n\r\n`,
    );
    expect(refusal(await client.answer())).toEqual([400, "upgrade_not_supported"]);
    expect(engine.requests).toEqual([]);
  });

  it("with CONNECT is refused", async () => {
    const { client } = await start();
    client.send("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n");
    expect(refusal(await client.answer())).toEqual([405, "method_not_allowed"]);
    await client.closed;
  });
});

describe("Expect: 100-continue", () => {
  it("B033: is answered once the head is acceptable, and goes no further", async () => {
    const { engine, client } = await start();
    client.send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${Buffer.byteLength(PLAIN_BODY)}\r\n\r\n`,
    );
    expect((await client.answer()).status).toBe(100);
    client.send(PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
    expect(engine.requests[0]?.headers.map(([name]) => name.toLowerCase())).not.toContain("expect");
  });

  it("is not answered where the path is not there", async () => {
    const { client } = await start();
    client.send("POST /nowhere HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n");
    expect(refusal(await client.answer())).toEqual([404, "not_found"]);
  });

  it("B033: is refused where the length is over the limit", async () => {
    const { client } = await start();
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100000\r\n\r\n`);
    expect(refusal(await client.answer())).toEqual([413, "body_too_large"]);
  });
});

describe("GET /v1/models", () => {
  it("lists the models in OpenAI's shape, and HEAD has the same head alone", async () => {
    const { engine, client } = await start();
    client.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    const got = await client.answer();
    const list = JSON.parse(got.body.toString()) as { object: string; data: Record<string, unknown>[] };
    expect(list.object).toBe("list");
    expect(list.data).toEqual([{ id: "m", object: "model", created: expect.any(Number), owned_by: "guidevane" }]);
    client.send("HEAD /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    await client.until("\r\n\r\n");
    expect(client.received.toString()).toContain(`content-length: ${got.body.length}`);
    expect(engine.requests).toEqual([]);
  });
});

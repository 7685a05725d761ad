import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { beforePair } from "./testing/pair.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const GOOD_STREAM = 'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\ndata: [DONE]\n\n';
const MESSAGES_BODY = STREAM_BODY.replace('"stream"', '"max_tokens":9,"stream"');
const RESPONSES_BODY = '{"model":"m","stream":true,"input":"hi"}';

function streamOf(body: string): Buffer {
  return Buffer.concat([Buffer.from(STREAM_HEAD), chunked(body), Buffer.from(LAST_CHUNK)]);
}

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(streamOf(GOOD_STREAM));
};

/** Home answers with these bytes, the other engine well. */
async function homeSays(bytes: Buffer | string, extra = "", then: (request: EngineRequestSeen) => void = () => {}) {
  const a = await setup.engine((request) => {
    request.socket.write(bytes);
    then(request);
  });
  const b = await setup.engine(good);
  const gateway = await beforePair(setup, [a, b], extra);
  return { a, b, gateway, client: await setup.client(gateway) };
}

function attempts(gateway: Awaited<ReturnType<typeof beforePair>>, outcome: string): Promise<number> {
  return metric(gateway, `guidevane_attempts_total{engine="a",outcome="${outcome}"}`);
}

describe("a stream whose first event is an error", () => {
  it.each([
    [
      "vLLM at its limit",
      CHAT,
      STREAM_BODY,
      'data: {"error":{"message":"full","type":"ServiceUnavailableError","param":null,"code":503}}\n\ndata: [DONE]\n\n',
      "saturated",
    ],
    ["a code as text", CHAT, STREAM_BODY, 'data: {"error":{"message":"full","code":"429"}}\n\n', "saturated"],
    [
      "a code in words",
      CHAT,
      STREAM_BODY,
      'data: {"error":{"message":"full","type":"requests","code":"rate_limit_exceeded"}}\n\n',
      "saturated",
    ],
    [
      "a dead core",
      CHAT,
      STREAM_BODY,
      'data: {"error":{"message":"EngineCore died","type":"InternalServerError","code":500}}\n\ndata: [DONE]\n\n',
      "fault",
    ],
    ["TGI", CHAT, STREAM_BODY, 'data: {"error":"Model is overloaded","error_type":"overloaded"}\n\n', "saturated"],
    [
      "SGLang",
      CHAT,
      STREAM_BODY,
      'data: {"error":{"object":"error","message":"queue full","type":"SERVICE_UNAVAILABLE","param":null,"code":503}}\n\ndata: [DONE]\n\n',
      "saturated",
    ],
    [
      "vLLM of old",
      CHAT,
      STREAM_BODY,
      'data: {"object":"error","message":"busy","type":"ServiceUnavailableError","param":null,"code":503}\n\ndata: [DONE]\n\n',
      "saturated",
    ],
    [
      "after comments and pings",
      CHAT,
      STREAM_BODY,
      ': hello\n\n:\n\nevent: ping\ndata: {}\n\ndata: {"error":{"code":503}}\n\n',
      "saturated",
    ],
    ["with CRLF", CHAT, STREAM_BODY, 'data: {"error":{"code":503}}\r\n\r\n', "saturated"],
    ["without its empty line", CHAT, STREAM_BODY, 'data: {"error":{"code":503}}\n', "saturated"],
    [
      "Anthropic's overload",
      "/v1/messages",
      MESSAGES_BODY,
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
      "saturated",
    ],
    [
      "Anthropic's fault",
      "/v1/messages",
      MESSAGES_BODY,
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"oh"}}\n\n',
      "fault",
    ],
    [
      "response.failed",
      "/v1/responses",
      RESPONSES_BODY,
      'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}\n\n',
      "fault",
    ],
    [
      "a responses error",
      "/v1/responses",
      RESPONSES_BODY,
      'event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"oh","param":null}\n\n',
      "saturated",
    ],
    [
      "a model that the engine should have",
      CHAT,
      STREAM_BODY,
      'data: {"error":{"message":"no such model","code":404}}\n\n',
      "fault",
    ],
  ])("is answered by another engine: %s", async (_what, path, request, body, outcome) => {
    const { b, gateway, client } = await homeSays(streamOf(body));
    client.post(path, request);
    const got = await client.answer();
    expect([got.status, got.body.toString()]).toEqual([200, GOOD_STREAM]);
    expect([headerIn(got, "x-guidevane-engine"), headerIn(got, "x-guidevane-reason")]).toEqual(["b", "retry"]);
    expect(b.requests.length).toBe(1);
    expect(await attempts(gateway, outcome)).toBe(1);
  });

  it("is found wherever its bytes are cut", async () => {
    const { client } = await homeSays("", "", ({ socket }) => {
      const wire = Buffer.concat([
        Buffer.from(STREAM_HEAD),
        ...[...'data: {"error":{"code":503}}\n\n'].map((each) => chunked(each)),
      ]);
      let at = 0;
      const next = (): void => {
        socket.write(wire.subarray(at, ++at));
        if (at < wire.length) setImmediate(next);
        else socket.write(LAST_CHUNK);
      };
      next();
    });
    client.post(CHAT, STREAM_BODY);
    expect((await client.answer()).body.toString()).toBe(GOOD_STREAM);
  });

  it("is the client's where the client is at fault, as it came", async () => {
    const body =
      'data: {"error":{"code":"invalid_parameter_error","param":null,"message":"<400> no","type":"invalid_request_error"},"id":"c"}\n\n';
    const { b, gateway, client } = await homeSays(streamOf(body));
    client.post(CHAT, STREAM_BODY);
    const got = await client.answer();
    expect([got.status, got.body.toString(), b.requests.length]).toEqual([200, body, 0]);
    expect(await attempts(gateway, "client-error")).toBe(1);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="client-error"}')).toBe(1);
  });

  it("is passed on as it was where all engines answer so", async () => {
    const bodies = [
      'data: {"error":{"code":503,"by":"a"}}\n\ndata: [DONE]\n\n',
      'data: {"error":{"code":503,"by":"b"}}\n\ndata: [DONE]\n\n',
    ];
    const [a, b] = await Promise.all(bodies.map((body) => setup.engine(({ socket }) => socket.write(streamOf(body)))));
    const gateway = await beforePair(setup, [a!, b!]);
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    const got = await client.answer();
    expect([got.status, got.body.toString()]).toEqual([200, bodies[1]]);
    expect(headerIn(got, "content-type")).toBe("text/event-stream; charset=utf-8");
    expect(headerIn(got, "x-guidevane-engine")).toBe("b");
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="saturated"}')).toBe(1);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(0);
  });
});

describe("a stream that breaks before its first event", () => {
  it.each([
    ["a reset", STREAM_HEAD, "reset"],
    ["a reset after a comment", `${STREAM_HEAD}${chunked(": hello\n\n")}`, "reset"],
    ["a close without an end", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", "end"],
  ])("by %s is answered by another engine", async (_what, bytes, how) => {
    const { gateway, client } = await homeSays("", "", ({ socket }) =>
      socket.write(bytes, () => (how === "reset" ? socket.resetAndDestroy() : socket.end())),
    );
    client.post(CHAT, STREAM_BODY);
    expect((await client.answer()).body.toString()).toBe(GOOD_STREAM);
    expect(await attempts(gateway, "fault")).toBe(1);
  });

  it.each(['"store":true', '"background":true'])(
    "is not repeated where it may have left something behind: %s",
    async (what) => {
      const { a, b, client } = await homeSays("", "", ({ socket }) =>
        socket.write(STREAM_HEAD, () => socket.resetAndDestroy()),
      );
      client.post("/v1/responses", `{"model":"m","stream":true,"input":"hi",${what}}`);
      const got = await client.answer();
      expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([502, "engine_unreachable"]);
      expect([a.requests.length, b.requests.length]).toEqual([1, 0]);
    },
  );
});

describe("a held head", () => {
  it("goes out with the first whole event, and what follows is not held", async () => {
    const { a, client } = await homeSays("");
    const asked = a.next();
    client.post(CHAT, STREAM_BODY);
    const { socket } = await asked;
    await new Promise((resolve) => socket.write(`${STREAM_HEAD}${chunked(": ping\n\ndata: {")}`, resolve));
    socket.write(chunked('"choices":[]}\n\n'));
    await client.until('data: {"choices":[]}');
    expect(client.received.toString()).toContain(": ping\n\ndata: {");
    socket.write(chunked("data: half"));
    await client.until("data: half");
  });

  it("goes out after holdHeadMs, and an error that comes then is the client's", async () => {
    const clock = new ManualClock();
    const [a, b] = [await setup.engine(), await setup.engine(good)];
    const gateway = await beforePair(setup, [a, b], "gateway: { timers: { holdHeadMs: 300 } }", { clock });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    const { socket } = await a.next();
    socket.write(STREAM_HEAD);
    const fromMs = clock.nowMs();
    await eventually(() => {
      clock.advance(1);
      return client.received.includes("text/event-stream");
    });
    expect(clock.nowMs() - fromMs).toBeGreaterThanOrEqual(300);
    socket.write(`${chunked('data: {"error":{"code":503}}\n\n')}${LAST_CHUNK}`);
    expect((await client.answer()).body.toString()).toBe('data: {"error":{"code":503}}\n\n');
    expect(b.requests.length).toBe(0);
    expect(await attempts(gateway, "saturated")).toBe(1);
  });

  it("goes out after 64 KB without an event", async () => {
    const comments = `: ${"x".repeat(1000)}\n\n`.repeat(70);
    const { client } = await homeSays(`${STREAM_HEAD}${chunked(comments)}`);
    client.post(CHAT, STREAM_BODY);
    await client.until(comments);
  });

  it("is that of an event stream alone: a plain answer goes out as it comes", async () => {
    const { client } = await homeSays(jsonAnswer('{"ok":1}').slice(0, -4));
    client.post(CHAT, PLAIN_BODY);
    await client.until('{"ok');
  });
});

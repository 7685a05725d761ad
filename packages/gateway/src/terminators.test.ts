import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { chunked, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const CONTENT = (index = 0, reason = "null"): string =>
  `data: {"choices":[{"index":${index},"delta":{"content":"x"},"finish_reason":${reason}}]}\n\n`;
const MESSAGE_BEGIN =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m"}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}\n\n';
const MESSAGE_STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const response = (type: string): string =>
  `event: response.created\ndata: {"type":"response.created","response":{"id":"r","error":null}}\n\nevent: response.${type}\ndata: {"type":"response.${type}","response":{"id":"r","status":"${type}","error":${type === "failed" ? '{"code":"server_error","message":"oh"}' : "null"}}}\n\n`;

const MESSAGES: [string, string] = ["/v1/messages", '{"model":"m","max_tokens":9,"stream":true,"messages":[]}'];
const RESPONSES: [string, string] = ["/v1/responses", '{"model":"m","stream":true,"input":"hi"}'];
const TWO: [string, string] = [CHAT, '{"model":"m","n":2,"stream":true,"messages":[]}'];
const ONE: [string, string] = [CHAT, STREAM_BODY];

describe("a well-framed stream is passed on as it came, and its outcome is", () => {
  it.each([
    ["success after [DONE]", ONE, `${CONTENT()}data: [DONE]\n\n`, "success"],
    ["success after a finish reason", ONE, `${CONTENT()}${CONTENT(0, '"stop"')}`, "success"],
    [
      "success after the finish reasons of all choices",
      TWO,
      `${CONTENT(0, '"stop"')}${CONTENT(1, '"length"')}`,
      "success",
    ],
    ["fault after that of one of two choices", TWO, `${CONTENT(1)}${CONTENT(0, '"stop"')}`, "fault"],
    ["fault after that of the only choice seen of two", TWO, `${CONTENT(0, '"stop"')}`, "fault"],
    ["fault without either", ONE, CONTENT(), "fault"],
    ["fault where it is empty", ONE, "", "fault"],
    ["fault after an error and [DONE]", ONE, `${CONTENT()}data: {"error":{"code":500}}\n\ndata: [DONE]\n\n`, "fault"],
    [
      "saturated after an overload in the middle",
      MESSAGES,
      `${MESSAGE_BEGIN}event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n`,
      "saturated",
    ],
    [
      "client-error after a refusal in the middle",
      ONE,
      `${CONTENT()}data: {"error":{"type":"invalid_request_error","code":"tool_use_failed","status_code":400}}\n\n`,
      "client-error",
    ],
    ["success after message_stop", MESSAGES, `${MESSAGE_BEGIN}${MESSAGE_STOP}`, "success"],
    ["fault without message_stop", MESSAGES, MESSAGE_BEGIN, "fault"],
    ["success after response.completed", RESPONSES, response("completed"), "success"],
    ["success after response.incomplete", RESPONSES, response("incomplete"), "success"],
    ["fault after response.failed", RESPONSES, response("failed"), "fault"],
  ] as const)("%s", async (_what, [path, request], body, outcome) => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(
        Buffer.concat([
          Buffer.from(STREAM_HEAD),
          body === "" ? Buffer.alloc(0) : chunked(body),
          Buffer.from(LAST_CHUNK),
        ]),
      ),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(path, request);
    expect((await client.answer()).body.toString()).toBe(body);
    expect(await metric(gateway, `guidevane_attempts_total{engine="a",outcome="${outcome}"}`)).toBe(1);
    expect(await metric(gateway, `guidevane_requests_total{class="m",outcome="${outcome}"}`)).toBe(1);
  });
});

describe("after its terminator", () => {
  it.each([
    [ONE, `${CONTENT()}data: [DONE]\n\n`],
    [MESSAGES, `${MESSAGE_BEGIN}${MESSAGE_STOP}`],
    [RESPONSES, response("completed")],
  ] as const)(
    "a stream has a second to end; then the client's ends well and the connection is dropped",
    async ([path, request], body) => {
      const clock = new ManualClock();
      const engine = await setup.engine();
      const gateway = await setup.before({ a: engine }, "", { clock });
      const client = await setup.client(gateway);
      client.post(path, request);
      const { socket, closed } = await engine.next();
      socket.write(`${STREAM_HEAD}${chunked(body)}`);
      await client.until(body.slice(-20));
      clock.advance(999);
      expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(1);
      clock.advance(1);
      expect((await client.answer()).body.toString()).toBe(body);
      await closed;
      expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="success"}')).toBe(1);
    },
  );

  it("a stream whose connection breaks is whole to its client", async () => {
    const body = `${CONTENT()}data: [DONE]\n\n`;
    const engine = await setup.engine(({ socket }) => socket.write(`${STREAM_HEAD}${chunked(body)}`));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    await client.until("[DONE]");
    engine.requests[0]!.socket.resetAndDestroy();
    expect((await client.answer()).body.toString()).toBe(body);
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="success"}')).toBe(1);
  });

  it("a finish reason alone does not make a broken stream whole", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(`${STREAM_HEAD}${chunked(CONTENT(0, '"stop"'))}`));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    await client.until('"stop"');
    engine.requests[0]!.socket.resetAndDestroy();
    await client.closed;
    expect(client.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="fault"}')).toBe(1);
  });
});

describe("a plain answer that ends by close", () => {
  const HEAD = "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n";

  it("B046: is whole with its last bracket, well framed, and the client's connection goes on", async () => {
    const engine = await setup.engine(({ socket }) => socket.end(`${HEAD}{"a":"}{","b":[{}]}\n`));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    for (let i = 0; i < 2; i++) {
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).body.toString()).toBe('{"a":"}{","b":[{}]}\n');
    }
    expect(engine.connections).toBe(2);
  });

  it("is cut where it stops before that", async () => {
    const engine = await setup.engine(({ socket }) => socket.end(`${HEAD}{"a":"}{","b":[{}]`));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    await client.closed;
    expect(client.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
  });
});

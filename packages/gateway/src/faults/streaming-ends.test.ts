import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { begun, chat, D, DONE, FIN, faultBench, streamOf, U } from "../testing/fault-bench.ts";
import { headerIn } from "../testing/raw-client.ts";
import { chunked, LAST_CHUNK } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, metric } from "../testing/setup.ts";

/** How a stream ended: what its client is told, and what is written down. */

const setup = createSetup(afterEach);

const event = (type: string, more: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const MESSAGE_START = event("message_start", {
  message: { id: "m1", usage: { input_tokens: 11, output_tokens: 1 } },
});
const MESSAGE_DELTA = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "x" } });

async function outcomeOf(body: string, path = CHAT) {
  const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(streamOf(body)) });
  const answer = await bench.ask(chat({ max_tokens: 9, input: "hi" }), { "x-request-id": "it" }, path);
  expect(answer.body.toString()).toBe(body);
  const decision = await bench.ended("it");
  expect(decision.attempts).toHaveLength(1);
  await bench.recovers();
  return decision;
}

describe("the end of an answer", () => {
  const response = (status: string): string =>
    event("response.created", { response: { id: "r1", usage: null } }) +
    event("response.output_text.delta", { delta: "x" }) +
    event(`response.${status}`, { response: { id: "r1", status, usage: { input_tokens: 11, output_tokens: 7 } } });
  it.each([
    ["response.completed", "/v1/responses", response("completed"), "success", "usage"],
    ["response.incomplete", "/v1/responses", response("incomplete"), "success", "usage"],
    ["response.failed", "/v1/responses", response("failed"), "fault", "partial"],
    [
      "message_stop",
      "/v1/messages",
      `${MESSAGE_START}${MESSAGE_DELTA}${event("message_delta", { usage: { output_tokens: 7 } })}${event("message_stop", {})}`,
      "success",
      "usage",
    ],
  ])("B010: by %s ends the request in the books, with its usage", async (_what, path, body, outcome, tokensFrom) => {
    expect(await outcomeOf(body, path)).toMatchObject({ outcome, promptTokens: 11, completionTokens: 7, tokensFrom });
  });

  it.each([
    ["overloaded_error", "saturated"],
    ["api_error", "fault"],
  ])("B012: by an error event of Anthropic's, %s, is no normal end but %s", async (type, outcome) => {
    const error = `event: error\ndata: {"type":"error","error":{"type":"${type}","message":"busy"}}\n\n`;
    expect((await outcomeOf(`${MESSAGE_START}${MESSAGE_DELTA}${error}`, "/v1/messages")).outcome).toBe(outcome);
  });

  it.each([
    ["a reset", "resetAndDestroy"],
    ["a close without the last chunk", "end"],
  ] as const)(
    "B013: by %s in the middle is cut for the client too, and no other engine is asked",
    async (_what, how) => {
      const bench = await faultBench(setup, {
        a: ({ socket }) => void socket.write(begun(D("1") + D("2") + D("3"))),
        b: () => expect.unreachable("another engine was asked"),
      });
      const client = await bench.client();
      client.post(CHAT, chat(), { "x-request-id": "it" });
      await client.until('"3"');
      bench.engines.a!.requests[0]!.socket[how]();
      await client.closed;
      expect(client.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
      expect(client.received.includes("[DONE]")).toBe(false);
      expect((await bench.ended("it")).outcome).toBe("fault");
      await bench.recovers();
    },
  );

  it("B013: in good order, with neither a finish reason nor a terminator, is passed on and is no success", async () => {
    expect((await outcomeOf(D("1") + D("2"))).outcome).toBe("fault");
  });

  it.each([
    ["without a finish reason", D("a") + DONE],
    ["with choices that are empty", `${D("a")}data: {"choices":[]}\n\n${DONE}`],
    ["without [DONE]", D("a") + FIN + U],
  ])("B014: %s is a success all the same", async (_what, body) => {
    expect((await outcomeOf(body)).outcome).toBe("success");
  });
});

describe("a length that an engine said", () => {
  it("B017: is the client's for the bytes as they came, and nothing is added behind them", async () => {
    const bytes = Buffer.from(`{"x":"${"y".repeat(53)}"}`);
    const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 61\r\n\r\n";
    const bench = await faultBench(setup, {
      a: ({ socket }) => void socket.write(Buffer.concat([Buffer.from(head), bytes])),
    });
    const answer = await bench.ask('{"model":"m","messages":[]}');
    expect([headerIn(answer, "content-length"), answer.body.equals(bytes)]).toEqual(["61", true]);
    await bench.recovers();
  });

  it("B017: holds no error event where its stream breaks off: the answer is cut", async () => {
    const clock = new ManualClock();
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    const bench = await faultBench(
      setup,
      { a: ({ socket }) => void socket.write(head + D("1")) },
      { extra: "gateway: { timers: { idleMs: 1000 } }", gateway: { clock } },
    );
    const client = await bench.client();
    client.post(CHAT, chat());
    await client.until('"1"');
    clock.advance(1000);
    await client.closed;
    expect(client.received.toString()).not.toContain("error");
    await bench.recovers();
  });

  it("B017: is not kept where the gateway's own error takes the answer's place", async () => {
    const bench = await faultBench(setup, {
      a: ({ socket }) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 61\r\ncontent-length: 62\r\n\r\nx"),
    });
    const answer = await bench.ask();
    expect(answer.status).toBe(502);
    expect(headerIn(answer, "content-length")).toBe(String(answer.body.length));
    expect(JSON.parse(answer.body.toString())).toHaveProperty("error");
    await bench.recovers();
  });
});

describe("a stream that takes its time", () => {
  it("B027: outlives the limits of plain answers as long as its pieces come", async () => {
    const clock = new ManualClock();
    const bench = await faultBench(
      setup,
      { a: ({ socket }) => void socket.write(begun(D("0"))) },
      { extra: "gateway: { timers: { idleMs: 2000, headMs: 3000, firstTokenMs: 3000 } }", gateway: { clock } },
    );
    const client = await bench.client();
    client.post(CHAT, chat(), { "x-request-id": "it" });
    await client.until('"0"');
    const { socket } = bench.engines.a!.requests[0]!;
    for (let i = 1; i < 15; i++) {
      clock.advance(1000);
      socket.write(chunked(D(String(i))));
      await client.until(`"${i}"`);
    }
    socket.write(Buffer.concat([chunked(FIN + U + DONE), Buffer.from(LAST_CHUNK)]));
    expect((await client.answer()).body.toString().match(/"content"/g)).toHaveLength(15);
    expect((await bench.ended("it")).outcome).toBe("success");
    await bench.recovers();
  });

  it("B026: is silent for 320 s under a limit of 400 s, for no client library has limits of its own", async () => {
    const clock = new ManualClock();
    const timers = "idleMs: 400000, headMs: 600000, firstTokenMs: 600000";
    const bench = await faultBench(
      setup,
      { a: () => {} },
      { extra: `gateway: { timers: { ${timers} } }`, gateway: { clock } },
    );
    const client = await bench.client();
    client.post(CHAT, chat());
    const { socket } = await bench.engines.a!.next();
    clock.advance(599_000);
    socket.write(begun(D("1")));
    await client.until('"1"');
    clock.advance(320_000);
    socket.write(Buffer.concat([chunked(FIN + DONE), Buffer.from(LAST_CHUNK)]));
    expect((await client.answer()).body.toString()).toBe(D("1") + FIN + DONE);
    expect(await metric(bench.gateway, 'guidevane_requests_total{class="m",outcome="success"}')).toBe(1);
    await bench.recovers();
  });
});

import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Decision } from "../decision.ts";
import { chat, D, DONE, FIN, faultBench, NORMAL, streamOf, U } from "../testing/fault-bench.ts";
import { chunked, LAST_CHUNK, STREAM_HEAD } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "../testing/setup.ts";

/** Streams that are written in odd ways reach the client as they were sent, and are read all the same. */

const setup = createSetup(afterEach);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Sends these pieces, each in a read of its own, expects them at the client byte for byte, and gives what was seen of them. */
async function through(pieces: readonly (string | Buffer)[], path = CHAT, body = chat()): Promise<Decision> {
  const bench = await faultBench(setup, {
    a: async ({ socket }) => {
      socket.write(STREAM_HEAD);
      for (const piece of pieces) {
        socket.write(chunked(piece));
        await turn();
      }
      socket.write(LAST_CHUNK);
    },
  });
  const answer = await bench.ask(body, { "x-request-id": "it" }, path);
  expect(answer.body.equals(Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))))).toBe(true);
  const decision = await bench.ended("it");
  expect(answer.body.includes("\ufffd")).toBe(false);
  await bench.recovers();
  return decision;
}

const SEEN = {
  outcome: "success",
  promptTokens: 11,
  completionTokens: 7,
  tokensFrom: "usage",
  ttftMs: expect.any(Number),
};

describe("a stream's bytes", () => {
  const wide = Buffer.from(`${D("北京😀")}${FIN}${U}${DONE}`);
  const [at, face] = [wide.indexOf("北"), wide.indexOf("😀")];
  it.each([
    ["inside letters", [0, at + 1, at + 2, face + 2, wide.length]],
    ["after every byte", Array.from({ length: wide.length + 1 }, (_, i) => i)],
  ])("B001: arrive whole where reads end %s", async (_what, cuts) => {
    const pieces = cuts.slice(1).map((cut, i) => wide.subarray(cuts[i], cut));
    expect(await through(pieces)).toMatchObject(SEEN);
  });

  it.each([
    ["CRLF", [NORMAL.replaceAll("\n", "\r\n")]],
    ["CR", [NORMAL.replaceAll("\n", "\r")]],
    ["a mix", [NORMAL.replaceAll("\n\n", "\n\r\n")]],
    ["CRLF cut in two", NORMAL.replaceAll("\n", "\r\n").split(/(?<=\r)/)],
  ])("B004: are events with line ends of %s", async (_what, pieces) => {
    expect(await through(pieces)).toMatchObject(SEEN);
  });

  it.each([
    ["no space", (text: string) => text.replaceAll("data: ", "data:")],
    ["two spaces", (text: string) => text.replaceAll("data: {", "data:  {")],
    ["a space at the end", (text: string) => text.replace("[DONE]", "[DONE] ")],
  ])("B005: are events with %s around their data", async (_what, change) => {
    expect(await through([change(NORMAL)])).toMatchObject(SEEN);
  });

  it("B009: keep every line of Anthropic's events, known fields or not", async () => {
    const event = (type: string, more: object, lines = ""): string =>
      `event: ${type}\n${lines}data: ${JSON.stringify({ type, ...more })}\n\n`;
    const body = [
      event("message_start", { message: { id: "m1", usage: { input_tokens: 11, output_tokens: 1 } } }, "id: 7\n"),
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "x" } }, "retry: 1500\n"),
      event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } }, "x-odd: y\n"),
      event("message_stop", {}),
    ];
    expect(await through(body, "/v1/messages", chat({ max_tokens: 9 }))).toMatchObject(SEEN);
  });

  it("B041: are left alone where choices are empty or null, and the last usage counts", async () => {
    const usage = (tokens: number) => `{"prompt_tokens":11,"completion_tokens":${tokens}}`;
    const events = [
      `data: {"choices":[],"usage":${usage(0)}}\n\n`,
      'data: {"choices":null,"usage":null}\n\n',
      D("x").replace("}]}", `}],"usage":${usage(1)}}`),
      FIN.replace("}]}", '}],"usage":null}'),
      U,
      DONE,
    ];
    expect(await through(events)).toMatchObject(SEEN);
  });

  it("B042: are left alone in calls of tools, however they are numbered and cut", async () => {
    const call = (delta: string): string => `data: {"choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`;
    const events = [
      call('{"role":"assistant","content":null}'),
      call('{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\\"a\\":\\"\\\\u0"}}]}'),
      call('{"tool_calls":[{"index":0,"function":{"arguments":"0e9\\"}"}},{"index":0,"id":"2"}]}'),
      call('{"reasoning_content":"why","x_vendor":{"n":1.0}}'),
      FIN,
      U,
      DONE,
    ];
    expect(await through(events)).toMatchObject(SEEN);
  });
});

describe("what is not a token", () => {
  it("B006: comments and pings are passed on, count as life, and as nothing else", async () => {
    const clock = new ManualClock();
    const bench = await faultBench(
      setup,
      { a: ({ socket }) => void socket.write(STREAM_HEAD) },
      { extra: "gateway: { timers: { idleMs: 1000, firstTokenMs: 9000, holdHeadMs: 500 } }", gateway: { clock } },
    );
    const client = await bench.client();
    client.post(CHAT, chat(), { "x-request-id": "it" });
    const { socket } = await bench.engines.a!.next();
    await eventually(() => {
      clock.advance(1);
      return client.received.includes("text/event-stream");
    });
    const silent = [": WORKING\n\n", ":\n\n", ": ping\n\n", "event: ping\ndata: {}\n\n"];
    const events = [...silent, D(": one"), ...silent, ...silent, D("two"), FIN, U, DONE];
    let sent = "";
    for (const event of events) {
      socket.write(chunked(event));
      sent += event;
      await eventually(() => client.received.includes(chunked(event)));
      clock.advance(999);
      client.received.fill(0);
    }
    socket.write(LAST_CHUNK);
    await client.until(LAST_CHUNK);
    const decision = await bench.ended("it");
    expect(decision).toMatchObject(SEEN);
    // Four heartbeats went before the first content.
    expect(Math.floor(decision.ttftMs! / 999)).toBe(4);
    expect(sent).toContain('": one"');
    await bench.recovers();
  });

  it("B044: events that can't be read are passed on and counted, and what follows is read", async () => {
    const bad = ["data: not-json\n\n", 'data: {"trunc\n\n', "data:\n\n", "data: \0\0\n\n"];
    const body = [D("x"), ...bad, FIN, U, DONE].join("");
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(streamOf(body)) });
    const answer = await bench.ask(chat(), { "x-request-id": "it" });
    expect(answer.body.toString()).toBe(body);
    expect(await bench.ended("it")).toMatchObject(SEEN);
    expect(await metric(bench.gateway, 'guidevane_malformed_events_total{class="m"}')).toBe(3);
    await bench.recovers();
  });
});

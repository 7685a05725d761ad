import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_ERROR_CODES, streamError } from "./api-error.ts";
import type { Gateway } from "./gateway.ts";
import { chunked, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { createSetup } from "./testing/setup.ts";

const setup = createSetup(afterAll);

describe("an error inside a stream", () => {
  const error = { status: 504, code: "engine_timeout", message: "too\nslow" } as const;
  const dataOf = (event: string): unknown => JSON.parse(/^(?:event: error\n)?data: (.*)\n\n$/.exec(event)![1]!);

  it("is an event of OpenAI's", () => {
    expect(dataOf(streamError("openai", error, "r"))).toEqual({
      error: { message: "too\nslow", type: "server_error", param: null, code: "engine_timeout" },
    });
  });

  it("is an event of the responses' kind, with what each of its readers looks for", () => {
    const event = streamError("responses", error, "r");
    expect(event).toMatch(/^event: error\n/);
    expect(dataOf(event)).toEqual({
      ...{ type: "error", code: "engine_timeout", message: "too\nslow", param: null, sequence_number: 0 },
      error: { type: "server_error", code: "engine_timeout", message: "too\nslow", param: null },
    });
  });

  it("is an event of Anthropic's, with the request's id", () => {
    const event = streamError("anthropic", error, "r");
    expect(event).toMatch(/^event: error\n/);
    expect(dataOf(event)).toEqual({
      type: "error",
      error: { type: "timeout_error", message: "too\nslow" },
      request_id: "r",
    });
  });
});

describe("a stream whose engine falls silent", () => {
  const FIRST: Readonly<Record<string, string>> = {
    "/v1/chat/completions": '{"choices":[{"index":0,"delta":{"content":"x"}}]}',
    "/v1/responses": '{"type":"response.output_text.delta","delta":"x"}',
    "/v1/messages": '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}',
  };
  let gateway: Gateway;
  beforeAll(async () => {
    const engine = await setup.engine(({ socket, requestLine }) => {
      const event = `data: ${FIRST[requestLine.split(" ")[1]!]}\n\n`;
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked(event)]));
    });
    gateway = await setup.before({ a: engine }, "gateway: { timers: { idleMs: 30 } }");
  });

  it.each([
    ["/v1/chat/completions", /^data: {"error":{.*"code":"engine_timeout"}}\n\n$/],
    ["/v1/responses", /^event: error\ndata: {"type":"error",.*}\n\n$/],
    ["/v1/messages", /^event: error\ndata: {"type":"error","error":{"type":"timeout_error",.*}\n\n$/],
  ])("of %s ends with one event of its API, and without a terminator", async (path, expected) => {
    const client = await setup.client(gateway);
    client.post(path, '{"model":"m","stream":true}');
    const [first, ...rest] = (await client.answer()).body.toString().split(/(?<=\n\n)/);
    expect(first).toBe(`data: ${FIRST[path]}\n\n`);
    expect(rest.join("")).toMatch(expected);
  });
});

it("the page on requests says what each code means", () => {
  const page = readFileSync(new URL("../../../docs/requests.md", import.meta.url), "utf8");
  expect(API_ERROR_CODES.filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});

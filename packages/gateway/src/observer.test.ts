import { describe, expect, it } from "vitest";
import { AnswerObserver } from "./observer.ts";

const fail = (error: unknown): void => {
  throw error;
};
const EVENTS = ["content-type", "text/event-stream"];

const chunk = (delta: object, rest: object = {}, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c1", choices: [{ index: 0, delta, finish_reason: finish }], ...rest })}\n\n`;
const HELLO = chunk({ content: "a" });
const FINISH = chunk({}, {}, "stop");
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}\n\n';
const DONE = "data: [DONE]\n\n";

/** A stream seen event by event, a millisecond apart. */
function seen(text: string, headers: readonly string[] = EVENTS): AnswerObserver {
  const observer = new AnswerObserver(200, headers, fail);
  for (const [at, event] of text.split(/(?<=\n\n)/).entries()) observer.see(Buffer.from(event), at);
  observer.end();
  return observer;
}

function body(document: unknown): AnswerObserver {
  const observer = new AnswerObserver(200, ["content-type", "application/json; charset=utf-8"], fail);
  observer.see(Buffer.from(typeof document === "string" ? document : JSON.stringify(document)), 0);
  observer.end();
  return observer;
}

describe("a stream", () => {
  const ends = (text: string, choices = 1) => {
    const observer = new AnswerObserver(200, EVENTS, fail, choices);
    observer.see(Buffer.from(text), 0);
    observer.end();
    return [observer.terminated, observer.whole];
  };

  it.each([
    ["[DONE]", `${HELLO}${DONE}`],
    ["[DONE] without space", `${HELLO}data:[DONE]\n\n`],
    ["[DONE] among spaces", `${HELLO}data:  [DONE] \n\n`],
    ["[DONE] without its empty line", `${HELLO}data: [DONE]\n`],
    ["[DONE] without any line end", `${HELLO}data: [DONE]`],
    ["message_stop", 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    ["response.completed", 'data: {"type":"response.completed","response":{}}\n\n'],
    ["response.incomplete", 'data: {"response":{"status":"incomplete"},"type":"response.incomplete"}\n\n'],
  ])("is over after %s", (_name, text) => {
    expect(ends(text)).toEqual([true, true]);
    expect(seen(text).failed).toBe(false);
  });

  it.each([
    ["a finish reason", `${HELLO}${FINISH}`],
    ["a finish reason and a last chunk of usage", `${HELLO}${FINISH}${USAGE}`],
    ["a finish reason without its empty line", `${HELLO}${FINISH.trimEnd()}`],
    ["a finish reason without an index", 'data: {"choices":[{"text":"a","finish_reason":"length"}]}\n\n'],
  ])("is whole, if it ends there, after %s", (_name, text) => {
    expect(ends(text)).toEqual([false, true]);
  });

  it.each([
    ["nothing", ""],
    ["content", HELLO],
    ["an empty finish reason", chunk({}, {}, "")],
    ["DONE as text", "data: DONE\n\n"],
    ["more than [DONE]", "data: [DONE]x\n\n"],
    ["[DONE] in a comment or another field", `: [DONE]\n\ndataa: [DONE]\n\n${HELLO}`],
    ["[DONE] inside the text", chunk({ content: "data: [DONE]\n\n" })],
    ["message_delta", 'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'],
  ])("is not whole after %s", (_name, text) => {
    expect(ends(text)).toEqual([false, false]);
  });

  it("is whole after a finish reason of every choice that was asked for or begun", () => {
    const choice = (index: number, finish: string | null) =>
      `data: ${JSON.stringify({ choices: [{ index, delta: { content: "x" }, finish_reason: finish }] })}\n\n`;
    const both = choice(0, null) + choice(1, null);
    expect(ends(`${both}${choice(1, "stop")}`)[1]).toBe(false);
    expect(ends(`${both}${choice(1, "stop")}${choice(1, null)}`)[1]).toBe(false);
    expect(ends(`${both}${choice(1, "stop")}${choice(0, "length")}`)[1]).toBe(true);
    expect(ends(choice(0, "stop"), 2)[1]).toBe(false);
    const inOne = 'data: {"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason":null}]}\n\n';
    expect(ends(inOne)[1]).toBe(false);
  });
});

describe("an error in a stream", () => {
  const vllm = 'data: {"error": {"message": "busy", "type": "Service Unavailable", "param": null, "code": 503}}\n\n';
  it.each([
    ["vLLM's, before its [DONE]", `${vllm}${DONE}`, 503, 1],
    ["after content", `${HELLO}${vllm}`, 503, 2],
    ["after comments and pings", `: ok\n\nevent: ping\ndata: {}\n\ndata: {"type":"ping"}\n\ndata:\n\n${vllm}`, 503, 1],
    [
      "Anthropic's overloaded_error",
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
      503,
      1,
    ],
    ["Anthropic's rate_limit_error", 'data: {"type":"error","error":{"type":"rate_limit_error"}}\n\n', 429, 1],
    ["Anthropic's api_error", 'data: {"type":"error","error":{"type":"api_error"}}\n\n', 500, 1],
    ["older vLLM's", 'data: {"object":"error","message":"x","type":"BadRequestError","code":400}\n\n', 400, 1],
    ["TGI's", 'data:{"error":"Model is overloaded","error_type":"overloaded"}\n\n', 503, 1],
    [
      "Groq's, by its status_code",
      'event: error\ndata: {"error":{"code":"tool_use_failed","status_code":400}}\n\n',
      400,
      1,
    ],
    ["Responses'", 'data: {"type":"error","code":"server_error","message":"x"}\n\n', 500, 1],
    [
      "Responses' response.failed",
      'data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded"}}}\n\n',
      429,
      1,
    ],
    ["one that is only named so", "event: error\ndata: out of memory\n\n", 502, 1],
    ["one that says no more", 'data: {"error":{"message":"x"}}\n\n', 502, 1],
    ["a code as text", 'data: {"error":{"code":"503"}}\n\n', 503, 1],
  ])("%s", (_name, text, status, failedAt) => {
    const observer = seen(text);
    expect([observer.failed, observer.error?.status, observer.failedAt]).toEqual([true, status, failedAt]);
  });

  it("is none where a text speaks of it, or where it is null or empty", () => {
    for (const text of [
      chunk({ content: 'data: {"error":{"code":503}}\n\nevent: error' }),
      chunk({ content: "a" }, { error: null }),
      'data: {"type":"response.created","response":{"error":null,"status":"in_progress"}}\n\n',
      'data: {"x":{"error":{"code":500}},"id":"1"}\n\n',
    ])
      expect(seen(text).failed).toBe(false);
  });
});

describe("usage", () => {
  const tokens = (observer: AnswerObserver) => {
    const { promptTokens, completionTokens, cachedTokens, tokensFrom } = observer.facts();
    return [promptTokens, completionTokens, cachedTokens, tokensFrom];
  };

  it("B041: is the last one told, for cumulative usage on every chunk counts once", () => {
    const at = (completion: number) =>
      chunk({ content: "a" }, { usage: { prompt_tokens: 5, completion_tokens: completion } });
    expect(tokens(seen(`${at(0)}${at(1)}${at(2)}${FINISH}${DONE}`))).toEqual([5, 2, null, "usage"]);
  });

  it("B169: of an answer that broke off is partial; without any, events are counted; zero stays zero", () => {
    const partial = chunk({ content: "a" }, { usage: { prompt_tokens: 5, completion_tokens: 3 } });
    expect(tokens(seen(`${HELLO}${partial}`))).toEqual([5, 3, null, "partial"]);
    expect(tokens(seen(HELLO.repeat(10)))).toEqual([null, 10, null, "events"]);
    expect(tokens(seen(chunk({ role: "assistant", content: "" })))).toEqual([null, null, null, null]);
    const zero = chunk({}, { usage: { prompt_tokens: 0, completion_tokens: 0 } }, "stop");
    expect(tokens(seen(`${HELLO}${zero}${DONE}`))).toEqual([0, 0, null, "usage"]);
    expect(tokens(seen(`${USAGE}data: {"error":{"code":500}}\n\n`))).toEqual([11, 7, null, "partial"]);
  });

  it("of Messages is put together from the first and the last event, and never added up", () => {
    const stream = (start: object, delta: object) =>
      `data: ${JSON.stringify({ type: "message_start", message: { id: "m", usage: start } })}\n\n` +
      `data: ${JSON.stringify({ type: "message_delta", usage: delta })}\n\ndata: {"type":"message_stop"}\n\n`;
    expect(tokens(seen(stream({ input_tokens: 17, output_tokens: 1 }, { output_tokens: 9 })))).toEqual([
      17,
      9,
      null,
      "usage",
    ]);
    // vLLM tells all at first, and then the part that was not cached beside the one that was.
    const split = { input_tokens: 5, output_tokens: 9, cache_read_input_tokens: 192 };
    expect(tokens(seen(stream({ input_tokens: 197, output_tokens: 0 }, split)))).toEqual([197, 9, 192, "usage"]);
    const cached = { input_tokens: 1, cache_read_input_tokens: 25, cache_creation_input_tokens: 4, output_tokens: 0 };
    expect(tokens(seen(stream(cached, { output_tokens: 9 })))).toEqual([30, 9, 25, "usage"]);
  });

  it("B044: survives events that are no JSON, and they are counted", () => {
    const bad = 'data: not-json\n\ndata: {"trunc\n\ndata: \0\0\n\ndata: [1]\n\ndata:\n\n';
    const observer = seen(`${HELLO}${bad}${USAGE}${DONE}`);
    expect(tokens(observer)).toEqual([11, 7, null, "usage"]);
    expect([observer.facts().malformedEvents, observer.terminated, observer.failed]).toEqual([4, true, false]);
  });

  it("B041: is read in odd framing: choices that are null, usage that is null, data over several lines", () => {
    const odd =
      'data: {"choices":null,"usage":null}\n\n: \ndata: {"usage":\ndata: {"prompt_tokens":1,\ndata:"completion_tokens":2}}\n\n';
    expect(tokens(seen(`${odd}${DONE}`))).toEqual([1, 2, null, "usage"]);
  });

  it("is found behind 12 MB of one event, at the cost of no memory", () => {
    const observer = new AnswerObserver(200, EVENTS, fail);
    observer.see(Buffer.from('data: {"type":"response.completed","response":{"id":"r","output":[{"b64":"'), 0);
    const piece = Buffer.alloc(65_532, 'abc\\"{');
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 192; i++) observer.see(piece, 0);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2 ** 20);
    observer.see(Buffer.from('"}],"usage":{"input_tokens":3,"output_tokens":4}}}\n\n'), 0);
    expect([...tokens(observer), observer.facts().responseId]).toEqual([3, 4, null, "usage", "r"]);
  });

  it("of rerank, score and embeddings is their prompt", () => {
    expect(tokens(body({ id: "r", results: [{ index: 0 }], usage: { total_tokens: 56 } }))).toEqual([
      56,
      null,
      null,
      "usage",
    ]);
    expect(tokens(body({ data: [{ embedding: [0.5, -1e-9] }], usage: { prompt_tokens: 8, total_tokens: 8 } }))).toEqual(
      [8, null, null, "usage"],
    );
  });
});

describe("times", () => {
  const times = (text: string) => {
    const observer = seen(text);
    return [observer.firstEventMs, observer.firstContentMs, observer.facts().tbotMs];
  };
  const role = chunk({ role: "assistant", content: "", tool_calls: [], reasoning: null });

  it("begin with the first content: no comment, no ping, no role alone, no chunk of usage", () => {
    expect(times(`: ping\n\n${role}${USAGE}${HELLO}${HELLO}${HELLO}${FINISH}`)).toEqual([1, 3, 2 / 6]);
    expect(times(`${role}${FINISH}${DONE}`)).toEqual([0, null, null]);
  });

  it.each([
    ["reasoning", chunk({ reasoning_content: "x" })],
    ["a tool call", chunk({ content: null, tool_calls: [{ index: 0, function: { name: "f" } }] })],
    ["a completion's text", 'data: {"choices":[{"text":"a","index":0}]}\n\n'],
    ["a delta of Messages", 'data: {"type":"content_block_delta","delta":{"text":"a"}}\n\n'],
    ["a tool of Messages", 'data: {"type":"content_block_start","content_block":{"name":"f"}}\n\n'],
    ["a delta of Responses", 'data: {"type":"response.reasoning_text.delta","delta":"a"}\n\n'],
  ])("B042: count %s as content", (_name, event) => {
    expect(times(`${role}${event}`)[1]).toBe(1);
  });

  it("between tokens are by usage where it is told, else by events", () => {
    expect(times(`${HELLO.repeat(4)}${FINISH}`)[2]).toBe(1);
    expect(times(`${HELLO.repeat(4)}${FINISH}${USAGE}`)[2]).toBe(3 / 6);
    expect(times(HELLO)[2]).toBeNull();
  });
});

describe("an answer in one document", () => {
  it("of the Responses API has an id that another request may name; others have none", () => {
    expect(body({ id: "resp_1", object: "response", status: "completed" }).facts()).toMatchObject({
      responseId: "resp_1",
      finish: "completed",
    });
    expect(
      body({ id: "chat_1", object: "chat.completion", choices: [{ finish_reason: "stop" }] }).facts(),
    ).toMatchObject({
      responseId: null,
      finish: "stop",
    });
  });

  it("is whole at its last bracket", () => {
    expect([body({}).terminated, body("[]").terminated, body('{"a":[1]').terminated]).toEqual([true, true, false]);
  });

  it("may be an error all the same", () => {
    expect(body({ object: "error", message: "x", code: 503 }).error?.status).toBe(503);
  });
});

describe("what can't be read", () => {
  it.each([
    [200, ["content-type", "text/event-stream", "content-encoding", "gzip"], "content-encoding gzip"],
    [200, ["content-type", "application/x-ndjson"], "content-type application/x-ndjson"],
    [200, [], "content-type none"],
    [503, ["content-type", "application/json"], "status 503"],
  ] as const)("is left alone, and why is said: %i %j", (status, headers, unread) => {
    const observer = new AnswerObserver(status, headers, fail);
    observer.see(Buffer.from(`${HELLO}${DONE}`), 0);
    observer.end();
    expect([observer.kind, observer.events, observer.facts().unread]).toEqual(["unread", 0, unread]);
  });

  it("ends the reading when the observer itself fails, and nothing else", () => {
    const failures: unknown[] = [];
    const observer = new AnswerObserver(200, EVENTS, (error) => failures.push(error));
    observer.see(Buffer.from(HELLO), 0);
    const broken = new Proxy(Buffer.from(HELLO), {
      get: () => {
        throw new Error("a fault");
      },
    });
    observer.see(broken, 1);
    observer.see(Buffer.from(DONE), 2);
    observer.end();
    expect([observer.kind, observer.facts().unread]).toEqual(["unread", "the observer failed"]);
    expect(failures).toEqual([new Error("a fault")]);
  });
});

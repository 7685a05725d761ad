import { GuidevaneError } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type LogFile, readRequestLog } from "./read-log.ts";
import type { LoggedRequest } from "./request-log.ts";

function file(text: string | Uint8Array, name = "log"): LogFile {
  return { name, chunks: chunked(Buffer.from(text)) };
}

/** In pieces that cut lines and characters anywhere. */
async function* chunked(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
}

async function read(text: string | Uint8Array): Promise<LoggedRequest[]> {
  const { runs } = await readRequestLog([file(text)]);
  return runs.flatMap((run) => Array.from({ length: run.size }, (_, index) => run.at(index)));
}

async function problemOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
  } catch (error) {
    if (GuidevaneError.is(error) && error.code === "bad_log") return error.message;
    throw error;
  }
  return "read";
}

const HEAD = "start_s,prompt_tokens,output_tokens,ttft_ms,e2e_ms";
const ONE = { startMs: 1500, promptTokens: 100, cachedTokens: 0, outputTokens: 11, ttftMs: 40, e2eMs: 140 };

describe("a log of requests", () => {
  it.each([
    ["CSV", `${HEAD}\n1.5,100,11,40,140`],
    ["CSV with a byte order mark, CRLF, spaces and blank lines", `\uFEFF${HEAD}\r\n 1.5 , 100,11,40,140\r\n\r\n`],
    [
      "quoted CSV",
      `"start_s","prompt_tokens","note","output_tokens","ttft_ms","e2e_ms"\n"1.5","100","a,\n""b""","11","40","140"`,
    ],
    ["other units", "start_ms,input_tokens,completion_tokens,ttft_s,latency_s\n1500,100,11,0.04,0.14"],
    ["a time between tokens for an end", "start_s,prompt_tokens,output_tokens,ttft_ms,tpot_ms\n1.5,100,11,40,10"],
    ["an instant for an end", "start_ms,end_ms,prompt_tokens,output_tokens,ttft_ms\n1500,1640,100,11,40"],
    [
      "an ISO instant, UTC where no zone is named",
      "start,prompt_tokens,output_tokens,ttft_ms,e2e_ms\n1970-01-01T00:00:01.5,100,11,40,140",
    ],
    ["JSONL", `{"start_s":1.5,"prompt_tokens":100,"output_tokens":11,"ttft_ms":40,"e2e_ms":140,"text":"é🦊"}\n`],
    [
      "what aiperf exports",
      JSON.stringify({
        metadata: { request_start_ns: 1_500_000_000, benchmark_phase: "profiling" },
        metrics: {
          input_sequence_length: { value: 100, unit: "tokens" },
          output_sequence_length: { value: 11, unit: "tokens" },
          time_to_first_token: { value: 40, unit: "ms" },
          request_latency: { value: 140, unit: "ms" },
          inter_chunk_latency: { value: [10, 10], unit: "ms" },
        },
        error: null,
      }),
    ],
    [
      "a detailed result of vllm bench serve",
      JSON.stringify({
        model_id: "m",
        start_times: [1.5],
        input_lens: [100],
        output_lens: [11],
        ttfts: [0.04],
        itls: [new Array(10).fill(0.01)],
        errors: [""],
      }),
    ],
  ])("is read from %s", async (_what, text) => {
    const [request, ...more] = await read(text);
    expect(more).toEqual([]);
    for (const [name, value] of Object.entries(ONE))
      expect(request![name as keyof LoggedRequest], name).toBeCloseTo(value, 6);
  });

  it("knows cached tokens, engines, runs and files apart", async () => {
    const head = `${HEAD},cached_tokens,engine,run`;
    const text = [head, "0,100,5,40,80,60,a,r1", "0,100,5,40,80,,b,r1", "0,100,5,40,80,,a,r2"].join("\n");
    const { runs } = await readRequestLog([file(text, "x"), file(text, "y")], { gpu: "H100" });
    expect(runs.map(({ group }) => [group.deployment.gpu, group.deployment.engine, group.run])).toEqual([
      ["H100", "a", "x r1"],
      ["H100", "b", "x r1"],
      ["H100", "a", "x r2"],
      ["H100", "a", "y r1"],
      ["H100", "b", "y r1"],
      ["H100", "a", "y r2"],
    ]);
    expect(runs[0]!.at(0).cachedTokens).toBe(60);
  });

  it("leaves out what is no answered request, and counts it by why", async () => {
    const text = [
      `${HEAD},status`,
      "0,100,5,40,80,200",
      "0,100,5,40,80,503",
      "0,100,5,40,80,error",
      "0,100,0,40,80,ok",
      "0,100,5,,80,ok",
      "0,100,5,40,,ok",
    ].join("\n");
    const { runs, left } = await readRequestLog([file(text)]);
    expect(runs[0]!.size).toBe(1);
    expect(left).toEqual({
      "failed requests": 2,
      "answers without a token": 1,
      "start, tokens or TTFT empty": 1,
      "no end": 1,
    });
  });

  it("of no request at all has none", async () => {
    expect(await readRequestLog([file("")])).toEqual({ runs: [], left: {} });
    expect(await readRequestLog([file(`${HEAD}\n`)])).toEqual({ runs: [], left: {} });
  });

  it.each([
    ["no column for a start", "when,prompt_tokens,output_tokens,ttft_ms,e2e_ms\n", /line 1: .*a start.*"when,/],
    ["no column for an end", "start_s,prompt_tokens,output_tokens,ttft_ms\n", /line 1: .*an end: one of e2e_ms/],
    ["NaN", `${HEAD}\n0,100,5,40,80\n1,100,5,NaN,80`, /log line 3: ttft_ms: .*got "NaN"/],
    ["a word", `${HEAD}\n0,many,5,40,80`, /line 2: prompt_tokens: .*"many"/],
    ["a negative time", `${HEAD}\n0,100,5,-40,80`, /line 2: ttft_ms: .*"-40"/],
    ["a time of two days", `${HEAD}\n0,100,5,40,172800000`, /line 2: e2e_ms: .*"172800000"/],
    ["infinity", `${HEAD}\n1e999,100,5,40,80`, /line 2: start_s: .*"1e999"/],
    ["a billion tokens", `${HEAD}\n0,1000000000,5,40,80`, /line 2: prompt_tokens/],
    ["an end before its first token", `${HEAD}\n0,100,5,40,30`, /line 2: e2e_ms: .*40 ms.*"30 ms"/],
    ["an end before its start", "start_s,end_s,prompt_tokens,output_tokens,ttft_ms\n9,8,1,5,40", /line 2: end_s/],
    [
      "seconds since 1970 in a column of instants",
      "start,prompt_tokens,output_tokens,ttft_ms,e2e_ms\n1700000000,1,5,40,80",
      /line 2: start: .*ISO 8601/,
    ],
    ["a row with too few cells", `${HEAD}\n0,100`, /log line 2: /],
    ["a quote that never ends", `${HEAD}\n"0,100,5,40,80\n1,2,3,4,5`, /log line \d: /],
    ["a line that is no JSON", `{"start_s":0}\n{"start_s":`, /line 2: must be one JSON object a line/],
    ["a JSON list", "[1,2]", /line 1: must be one JSON object/],
    [
      "another unit of aiperf",
      JSON.stringify({ metadata: { request_start_ns: 1 }, metrics: { request_latency: { value: 1, unit: "s" } } }),
      /line 1: metrics.request_latency.unit: must be ms \(got "s"\)/,
    ],
    [
      "lists of vllm that differ in length",
      JSON.stringify({ ttfts: [1, 2], itls: [[1]], start_times: [1, 2], input_lens: [1, 2], output_lens: [1, 2] }),
      /line 1: itls: must be a list as long as ttfts \(got 1 entries\)/,
    ],
  ])("with %s is refused with its line and value", async (_what, text, message) => {
    expect(await problemOf(read(text))).toMatch(message);
  });

  it("is read as it comes: a bad line ends the reading of a file without end", async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`${HEAD}\n0,100,5,40,x\n`);
      for (;;) yield Buffer.from("0,100,5,40,80\n".repeat(1000));
    }
    expect(await problemOf(readRequestLog([{ name: "endless", chunks: endless() }]))).toMatch(/endless line 2: e2e_ms/);
    async function* noLine(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`${HEAD}\n"`);
      for (;;) yield Buffer.alloc(1 << 16, "a");
    }
    expect(await problemOf(readRequestLog([{ name: "quote", chunks: noLine() }]))).toMatch(/quote line 2: /);
    async function* noJsonLine(): AsyncGenerator<Uint8Array> {
      for (;;) yield Buffer.alloc(1 << 22, "{");
    }
    expect(await problemOf(readRequestLog([{ name: "brace", chunks: noJsonLine() }]))).toMatch(/brace line 1: longer/);
  });

  it("may have its rows in any order of time, but not a clock that was set back", async () => {
    const row = (startS: number): string => `${startS},100,5,40,80`;
    const times = Array.from({ length: 200 }, (_, at) => 10 * at);
    const shuffled = times.map((_, at) => times[(at * 77) % times.length]!);
    expect(await read([HEAD, ...shuffled.map(row)].join("\n"))).toHaveLength(200);
    const set = [HEAD, ...times.map(row), ...times.map((at) => row(at + 5))].join("\n");
    expect(await problemOf(read(set))).toMatch(/log line 202: start: goes back by 1985000 ms; runs with a clock each/);
  });
});

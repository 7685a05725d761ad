import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type ReadTraceOptions, readTrace } from "./index.ts";

const options: ReadTraceOptions = {
  name: "trace",
  origins: [{ cluster: "east", part: 1, shiftHours: 0 }],
  requestClass: "chat",
  seed: 1,
  model: null,
  scale: 1,
  size: { promptTokens: 100, outputTokens: 10 },
};

describe("a trace", () => {
  it("of Azure's form has times and sizes, and every request alone", () => {
    const text =
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n";
    const { atMs, promptTokens, outputTokens, conversation } = readTrace(text, options);
    expect([...atMs]).toEqual([0, 52]);
    expect([...promptTokens]).toEqual([4808, 3180]);
    expect([...outputTokens]).toEqual([10, 8]);
    expect(new Set(conversation).size).toBe(2);
  });

  it("of Mooncake's form keeps its blocks, with conversations by the second", () => {
    const line = (timestamp: number, ids: number[]) =>
      JSON.stringify({ timestamp, input_length: 512 * ids.length + 5, output_length: 3, hash_ids: [...ids, 99] });
    const workload = readTrace([line(0, [0, 1]), line(3000, [0, 1, 2]), line(6000, [0, 7])].join("\n"), options);
    expect(workload.blockTokens).toBe(512);
    const blocks = [0, 1, 2].map((row) => {
      const from = workload.blockFrom[row]!;
      return [...workload.blockIds.subarray(from, from + workload.promptBlocks[row]!)];
    });
    expect(blocks).toEqual([
      [0, 1],
      [0, 1, 2],
      [0, 7],
    ]);
    expect(workload.conversation[0]).toBe(workload.conversation[1]);
    expect(workload.conversation[2]).not.toBe(workload.conversation[0]);
  });

  it("of agents takes its blocks together by eight, local to a session", () => {
    const line = (session: string, t: number, count: number) =>
      JSON.stringify({ session, t, input_tokens: 64 * count, output_tokens: 5, block_runs: [[1, count]] });
    const workload = readTrace([line("a", 0, 16), line("a", 5, 24), line("b", 0, 16)].join("\n"), options);
    const blocks = [...workload.conversation.keys()].map((row) => {
      const from = workload.blockFrom[row]!;
      return {
        of: workload.conversation[row]!,
        ids: [...workload.blockIds.subarray(from, from + workload.promptBlocks[row]!)],
      };
    });
    const [short, long] = blocks
      .filter(({ of }) => blocks.filter((each) => each.of === of).length === 2)
      .map(({ ids }) => ids)
      .sort((a, b) => a.length - b.length);
    expect([short!.length, long!.length]).toEqual([2, 3]);
    expect(long!.slice(0, 2)).toEqual(short);
  });

  it("of rates becomes a Poisson stream of them", () => {
    const text = "model,window_start_s,rate_rps\nx,0,5\ny,0,100\nx,600,10\n";
    const workload = readTrace(text, { ...options, model: "x", scale: 2 });
    expect(Math.abs(workload.size / (2 * (5 + 10) * 600) - 1)).toBeLessThan(0.05);
    const early = [...workload.atMs].filter((atMs) => atMs < 600_000).length;
    expect(Math.abs(early / (workload.size - early) / 0.5 - 1)).toBeLessThan(0.1);
  });

  it("of one's own, CSV or JSONL, says session, cluster and class where it knows", () => {
    const csv =
      "t_s,prompt_tokens,output_tokens,session,cluster,class\n1,600,100,s,west,code\n9,1200,50,s,west,code\n2,30,4,,,\n";
    const jsonl = `{"t_s":1,"prompt_tokens":600,"output_tokens":100,"session":"s","cluster":"west","class":"code"}
{"t_s":9,"prompt_tokens":1200,"output_tokens":50,"session":"s","cluster":"west","class":"code"}
{"t_s":2,"prompt_tokens":30,"output_tokens":4}`;
    const [one, two] = [readTrace(csv, options), readTrace(jsonl, options)];
    expect(one).toEqual(two);
    expect([...one.atMs]).toEqual([0, 1000, 8000]);
    expect(one.clusters).toEqual(["east", "west"]);
    expect([...one.cluster]).toEqual([1, 0, 1]);
    expect([...one.turn]).toEqual([0, 0, 1]);
    // The second turn's prompt begins with the first and its answer.
    expect(one.blockFrom[2]).toBe(one.blockFrom[0]);
    expect(one.promptBlocks[2]).toBe(4);
  });

  it.each([
    [
      "t_s,prompt_tokens,output_tokens,cluster\n1,6,1,east\n2,6,1,zz\n",
      'trace:3: cluster is none of f.yaml, which has east, west (got "zz")',
    ],
    [
      '{"t_s":1,"prompt_tokens":6,"output_tokens":1,"class":"zz"}',
      'trace:1: class is none of f.yaml, which has chat (got "zz")',
    ],
  ])("of one's own is refused with its line where the fleet has no such thing: %s", (text, message) => {
    const fleet = { name: "f.yaml", clusters: ["east", "west"], classes: ["chat"] };
    expect(() => readTrace(text, { ...options, fleet })).toThrow(message);
  });

  it("is shared out by parts, whole conversations, and turned round by a shift", () => {
    const text = [
      "t_s,prompt_tokens,output_tokens,session",
      ...Array.from({ length: 4000 }, (_, i) => `${i * 4},10,1,s${i % 1000}`),
    ];
    const origins = [
      { cluster: "east", part: 3, shiftHours: 0 },
      { cluster: "west", part: 1, shiftHours: 1 },
    ];
    const workload = readTrace(text.join("\n"), { ...options, origins });
    const west = [...workload.cluster].filter((cluster) => cluster === 1).length;
    expect(Math.abs(west / 4000 - 0.25)).toBeLessThan(0.04);
    for (const conversation of new Set(workload.conversation)) {
      const places = new Set([...workload.cluster].filter((_, row) => workload.conversation[row] === conversation));
      expect(places.size).toBe(1);
    }
    expect(workload.assumptions.join(" ")).toContain("west sees it 1 hours later");
  });

  it.each([
    ["nothing known", /no known form/],
    ["TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1", /trace:2: TIMESTAMP/],
    [
      "t_s,prompt_tokens,output_tokens\n1,many,1",
      /trace:2: prompt_tokens must be a number of 1 or more \(got "many"\)/,
    ],
    ['{"t_s":1,"prompt_tokens":5,"output_tokens":1}\n[', /trace:2: is not a JSON object/],
    ["t_s,prompt_tokens,output_tokens\n", /no requests/],
  ])("is refused with its line where it is wrong: %s", (text, message) => {
    expect(() => readTrace(text, options)).toThrow(message);
  });

  const data = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../../../shared/data");
  const hasData = existsSync(join(data, "traces"));
  it.skipIf(!hasData).each([
    ["azure_2023_code.csv.gz", 8819, 1],
    ["mooncake_conversation.jsonl.gz", 12_031, 512],
  ])(
    `of the public ones is read whole: %s${hasData ? "" : " (skipped: no data; set GUIDEVANE_DATA)"}`,
    (name, requests, least) => {
      const text = gunzipSync(readFileSync(join(data, "traces", name))).toString("utf8");
      const workload = readTrace(text, { ...options, name });
      expect(workload.size).toBe(requests);
      expect(workload.blockTokens).toBeGreaterThanOrEqual(least);
    },
  );
});

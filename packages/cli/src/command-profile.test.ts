import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parseProfile } from "@guidevane/core";
import { afterAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "guidevane-profile-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Two deployments whose times grow with the requests in flight, the second one twice as slow; a third with two levels only. */
function points(): string {
  const rows = [1, 2, 4, 8, 16, 32].flatMap((n) => [
    `H100,1,m,1000,100,concurrency,${n},${50 + 4 * n},${10 + 0.5 * n}`,
    `A100,1,m,1000,100,concurrency,${n},${100 + 8 * n},${20 + n}`,
  ]);
  const short = [1, 2].map((n) => `L4,1,m,1000,100,concurrency,${n},500,50`);
  return ["gpu,gpu_count,model,isl,osl,load_var,load_value,ttft_ms,tpot_ms", ...rows, ...short].join("\n");
}

/** The log of so many clients that ask again at once, for two minutes. */
function closedRun(clients: number): string {
  const rows: (readonly [startMs: number, row: string])[] = [];
  const [ttftMs, e2eMs] = [50 + 4 * clients, 50 + 4 * clients + 99 * (10 + 0.5 * clients)];
  for (let client = 0; client < clients; client++)
    for (let startMs = (client * e2eMs) / clients; startMs < 120_000; startMs += e2eMs)
      rows.push([startMs, `${startMs},1000,100,${ttftMs},${e2eMs}`]);
  rows.sort(([a], [b]) => a - b);
  return ["start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms", ...rows.map(([, row]) => row)].join("\n");
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await runProgram(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

describe("the profiles that ship", () => {
  it("are listed and printed, each a valid profile with its source, licence and held-out error", async () => {
    const { out } = await run("profile", "list");
    const names = out
      .split("\n")
      .slice(1, -1)
      .map((line) => line.split(/ +/)[0]!);
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) {
      const { code, out: text } = await run("profile", "show", name);
      expect(code).toBe(0);
      expect(parseProfile(text, name)).toMatchObject({ profile: name });
      expect(text).toMatch(/licence: Apache-2\.0/);
      expect(Number(/tbot: ([\d.]+)/.exec(text)?.[1])).toBeLessThan(0.06);
    }
    expect(await run("profile", "show", "tpu")).toMatchObject({ code: 2, err: expect.stringContaining('"tpu"') });
  });
});

describe("guidevane profile fit", () => {
  const file = join(folder, "points.csv");
  writeFileSync(file, points());

  it("prints a line for each curve, and what it left out", async () => {
    const { code, out } = await run("profile", "fit", file);
    expect(code).toBe(0);
    expect(out).toMatch(/^1xh100-m-1000x100 +6 /m);
    expect(out).toMatch(/^1xa100-m-1000x100 +6 /m);
    expect(out).toMatch(
      /2 curves, 2 of them convex and non-decreasing, [\d.]+ ms each; error at a load level left out of the fit/,
    );
    expect(out).toMatch(/in the median curve: TTFT \d.* \(p50 none, p99 none\), TBOT \d.*, E2E \d/);
    expect(out).toMatch(/left out: 1 \(curves of fewer than 3 load levels\)/);
  });

  it("says how well a fit to one workload does on another of the same deployment", async () => {
    const other = join(folder, "two-workloads.csv");
    const longer = points().replaceAll(",1000,100,", ",2000,100,").split("\n").slice(1).join("\n");
    writeFileSync(other, `${points()}\n${longer}`);
    const { out } = await run("profile", "fit", other);
    expect(out).toMatch(/error on a workload left out, in the median of 4 curves: TTFT \d.*, TBOT [67]\.\d %/);
    expect((await run("profile", "fit", file)).out).not.toContain("on a workload left out");
  });

  it("gives coefficients, shape, band and held-out errors as JSON, for the curves asked for", async () => {
    const { out } = await run("profile", "fit", file, "--only", "a100", "--json");
    const { curves } = JSON.parse(out);
    expect(curves).toHaveLength(1);
    expect(curves[0]).toMatchObject({ sku: "1xa100", shape: { convex: true, nonDecreasing: true } });
    expect(curves[0].ttftMs[0][1]).toBeGreaterThan(90);
    expect(curves[0].band.ttftMs.high).toHaveLength(curves[0].ttftMs.length);
    expect(Object.keys(curves[0].source.heldOutError)).toEqual(["ttft", "tbot", "e2e"]);
  });

  it("says where what it is asked for was not measured", async () => {
    const beyond = await run("profile", "fit", file, "--only", "h100", "--at", "200");
    expect(beyond.out).toContain("extrapolated");
    const within = await run("profile", "fit", file, "--only", "h100", "--at", "10");
    expect(within.out).not.toContain("extrapolated");
  });

  it("writes profile files that a fleet can name, and a picture", async () => {
    const [out, plot] = [join(folder, "profiles"), join(folder, "pictures", "curves.svg")];
    await run("profile", "fit", file, "--out", out, "--plot", plot, "--licence", "CC0");
    const names = readdirSync(out).sort();
    expect(names).toEqual(["1xa100-m-1000x100.yaml", "1xh100-m-1000x100.yaml"]);
    const text = readFileSync(join(out, names[1]!), "utf8");
    expect(parseProfile(text, names[1]!)).toMatchObject({ sku: "1xh100", reference: { promptTokens: 1000 } });
    expect(text).toContain("licence: CC0");
    expect(readFileSync(plot, "utf8").match(/<circle/g)).toHaveLength(24);
  });

  it("fits logs of requests, a run a file, packed or not, with the loop that the requests show or one that is stated", async () => {
    const runs = [1, 2, 4, 8].map((clients) => {
      const path = join(folder, `run-${clients}.csv.gz`);
      writeFileSync(path, gzipSync(closedRun(clients)));
      return path;
    });
    const plot = join(folder, "log.svg");
    const { code, out } = await run("profile", "fit", ...runs, "--gpu", "L4", "--model", "m", "--plot", plot, "--json");
    expect(code).toBe(0);
    const [curve, ...more] = JSON.parse(out).curves;
    expect(more).toEqual([]);
    expect(curve).toMatchObject({ profile: "l4-m-1000x100", loop: "closed", source: { loop: "inferred", points: 4 } });
    expect(curve.source.data).toBe("run-1.csv.gz, run-2.csv.gz, run-4.csv.gz, run-8.csv.gz");
    for (const error of Object.values(curve.source.heldOutError)) expect(error).toBeLessThan(0.05);
    expect(readFileSync(plot, "utf8").match(/<circle/g)).toHaveLength(8);
    const stated = await run("profile", "fit", ...runs, "--loop", "open", "--json");
    expect(JSON.parse(stated.out).curves[0]).toMatchObject({ loop: "open", source: { loop: "stated" } });
  });

  it("refuses logs of one level, with a bad value, with a loop that is none, and files that are not packed", async () => {
    const one = join(folder, "one.csv");
    writeFileSync(one, closedRun(4));
    expect(await run("profile", "fit", one)).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /1 curves, 1 of them with fewer than 3 load levels.*\nleft out: \d+ \(requests outside/,
      ),
    });
    writeFileSync(
      join(folder, "bad.csv"),
      closedRun(4).replace(/.*\n(.*),100,/, (line) => line.replace(",100,", ",?,")),
    );
    expect(await run("profile", "fit", join(folder, "bad.csv"))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/bad\.csv line 2: output_tokens: must be a number .*"\?"/),
    });
    expect(await run("profile", "fit", one, "--loop", "ring")).toMatchObject({
      code: 2,
      err: expect.stringContaining('"ring"'),
    });
    writeFileSync(join(folder, "plain.csv.gz"), closedRun(1));
    expect(await run("profile", "fit", join(folder, "plain.csv.gz"))).toMatchObject({
      code: 2,
      err: expect.stringContaining("Z_DATA_ERROR"),
    });
  });

  it("refuses a file without a curve, a bad number and a bad load", async () => {
    const empty = join(folder, "empty.csv");
    writeFileSync(empty, "isl,osl,load_var,load_value,ttft_ms,tpot_ms\n");
    expect(await run("profile", "fit", empty)).toMatchObject({
      code: 2,
      err: expect.stringContaining("no curve to fit"),
    });
    expect(await run("profile", "fit", file, "--only", "tpu")).toMatchObject({ code: 2 });
    expect(await run("profile", "fit", file, "--at", "-1")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--at"),
    });
    expect(await run("profile", "fit", join(folder, "none.csv"))).toMatchObject({ code: 2 });
  });
});

describe("guidevane profile seed", () => {
  const known = ["--gpu", "h100", "--gpus", "2", "--model", "llama-3.1-70b", "--precision", "fp8"];
  const shape = ["--prompt", "1024", "--output", "1024"];

  it("prints a profile file that says that it is a guess, near the shipped one of that engine", async () => {
    const { code, out } = await run("profile", "seed", ...known, ...shape);
    expect(code).toBe(0);
    const guess = parseProfile(out, "seed");
    expect(out).toMatch(/kind: seeded/);
    expect(out).toMatch(/confidence: low/);
    const measured = parseProfile((await run("profile", "show", "llama-3.1-70b-fp8-2xh100")).out, "shipped");
    // That one is among those that the coefficients were fitted to.
    expect(Math.abs(guess.tbotMs[0]![1] / measured.tbotMs[0]![1] - 1)).toBeLessThan(0.3);
    expect(Math.abs(guess.capacityWps / measured.capacityWps - 1)).toBeLessThan(0.6);
  });

  it("is shrunk towards points or a log, whose tokens it takes, and drawn with them", async () => {
    const points = join(folder, "few.csv");
    writeFileSync(
      points,
      "isl,osl,load_var,load_value,ttft_ms,tpot_ms\n1024,512,concurrency,8,900,60\n1024,512,concurrency,32,1500,90\n",
    );
    const plot = join(folder, "seed.svg");
    const { out } = await run("profile", "seed", ...known, "--points", points, "--plot", plot, "--json");
    const shrunk = JSON.parse(out);
    expect(shrunk).toMatchObject({
      reference: { promptTokens: 1024, outputTokens: 512 },
      source: { points: 2, measured: { inFlight: { from: 8, to: 32 } } },
    });
    const plain = JSON.parse(
      (await run("profile", "seed", ...known, "--prompt", "1024", "--output", "512", "--json")).out,
    );
    expect(shrunk.tbotMs[0][1]).toBeGreaterThan(2 * plain.tbotMs[0][1]);
    expect(readFileSync(plot, "utf8").match(/<circle/g)).toHaveLength(4);
    const few = await run("profile", "fit", points);
    expect(few).toMatchObject({ code: 2, err: expect.stringContaining("profile seed --points") });
  });

  it("takes the figures of hardware and models that it does not know", async () => {
    const gpu = ["--gpu", "x1", "--memory", "96e9", "--bandwidth", "4e12", "--bf16", "500e12", "--fp8", "1e15"];
    const model = ["--model", "m", "--params", "8e9", "--layers", "32", "--kv-numbers", "65536"];
    const { code, out } = await run("profile", "seed", ...gpu, ...model, ...shape);
    expect(code).toBe(0);
    expect(parseProfile(out, "seed")).toMatchObject({ sku: "1xx1", model: "m" });
  });

  it.each([
    ["an unknown GPU", ["--gpu", "h1000", "--model", "llama-3.1-8b", ...shape], /--gpu: must be one of a30.*"h1000"/],
    [
      "a name that every object has",
      ["--gpu", "constructor", "--model", "llama-3.1-8b", ...shape],
      /--gpu: .*"constructor"/,
    ],
    ["an unknown model", ["--gpu", "h100", "--model", "gpt-9", ...shape], /--model: .*"gpt-9"/],
    ["half of a GPU's figures", ["--gpu", "x", "--bandwidth", "1e12", "--model", "llama-3.1-8b", ...shape], /--memory/],
    ["a number that is none", [...known, "--prompt", "many", "--output", "1"], /--prompt: .*"many"/],
    ["a negative number", [...known, "--prompt", "10", "--output=-1"], /--output: .*"-1"/],
    ["half a GPU", ["--gpu", "h100", "--gpus", "1.5", "--model", "llama-3.1-8b", ...shape], /--gpus: .*"1.5"/],
    [
      "more active parameters than there are",
      [
        "--gpu",
        "h100",
        "--model",
        "m",
        "--params",
        "8e9",
        "--active-params",
        "9e9",
        "--layers",
        "1",
        "--kv-numbers",
        "1",
        ...shape,
      ],
      /--active-params/,
    ],
    ["no tokens", known, /--prompt: must be a number/],
    [
      "a model that does not fit",
      ["--gpu", "l4", "--model", "llama-3.1-70b", ...shape],
      /1 x l4: the memory beside the weights holds 0\.0/,
    ],
    [
      "a precision that is none",
      ["--gpu", "h100", "--model", "llama-3.1-8b", "--precision", "fp2", ...shape],
      /--precision.*"fp2"/,
    ],
  ])("is refused for %s", async (_what, flags, message) => {
    expect(await run("profile", "seed", ...flags)).toMatchObject({ code: 2, err: expect.stringMatching(message) });
  });
});

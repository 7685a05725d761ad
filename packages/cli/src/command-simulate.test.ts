import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";

const folder = await mkdtemp(join(tmpdir(), "guidevane-simulate-"));
afterAll(() => rm(folder, { recursive: true }));

async function simulate(...args: string[]): Promise<{ code: number; error: string }> {
  let error = "";
  const code = await runProgram(["simulate", ...args], {
    out: () => {},
    err: (text) => {
      error += text;
    },
  });
  return { code, error };
}

describe("guidevane simulate", () => {
  it("compares policies on its own fleet, and writes a page and its JSON twin", async () => {
    const out = join(folder, "new", "report.html");
    const policies = "guidevane,waterfall,round-robin";
    const run = await simulate(
      "--policy",
      policies,
      "--seconds",
      "5",
      "--load",
      "0.3",
      "--out",
      out,
      "--fail",
      "death:use-h100:1:2",
    );
    expect(run).toEqual({ code: 0, error: "" });
    expect(await readFile(out, "utf8")).toContain("<title>Guidevane policy lab");
    const report = JSON.parse(await readFile(join(folder, "new", "report.json"), "utf8"));
    expect(report.policies.map(({ policy }: { policy: string }) => policy)).toEqual(policies.split(","));
    expect(report.conditions).toContain("death:use-h100:1:2");
    expect(report.verdict).not.toBe("");
  });

  it.each([
    [["--policy", "best"], "--policy"],
    [["--trace", "nowhere.csv"], "--trace"],
    [["--fail", "rain:1:2"], "must be one of death:ENGINE:AT:FOR, region:REGION:AT:FOR"],
    [["--fail", "rain"], "rain"],
    [["--fail", "death:use-h100"], "must be death:ENGINE:AT:FOR, with numbers of 0 or more"],
    [["--fail", "slowdown:use-h100:1:2:0"], "must be slowdown:ENGINE:AT:FOR:FACTOR, with numbers of 0.01 or more"],
    [["--fail", "death:nobody:1:2"], "nobody"],
    [["--load", "much"], "--load"],
    [["--out", "/proc/guidevane/report.html"], "--out: must be a file in a folder that can be written to"],
    [["--out", folder], "--out: must be a file; a folder is in its place"],
    [["--trace", "package.json", "--origin", "mars=1"], "mars"],
    [["--origin", "us-east=1"], "--origin: says something of a trace, and there is no --trace"],
  ])("ends with 2 and names what is wrong: %s", async (args, named) => {
    const { code, error } = await simulate("--seconds", "1", "--load", "0.1", ...args);
    expect(code).toBe(2);
    expect(error).toContain(named);
  });

  it("says of a cluster that it does not know the line, and whose fleet that is", async () => {
    const trace = join(folder, "own.csv");
    await writeFile(trace, "t_s,prompt_tokens,output_tokens,cluster\n0,100,10,zz\n");
    expect(await simulate("--trace", trace)).toEqual({
      code: 2,
      error: expect.stringMatching(
        /own\.csv:2: cluster is none of the lab's own fleet \(--fleet names another\), which has .+ \(got "zz"\)/,
      ),
    });
  });
});

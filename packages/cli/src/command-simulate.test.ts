import { mkdtemp, readFile, rm } from "node:fs/promises";
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
    const out = join(folder, "report.html");
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
    const report = JSON.parse(await readFile(join(folder, "report.json"), "utf8"));
    expect(report.policies.map(({ policy }: { policy: string }) => policy)).toEqual(policies.split(","));
    expect(report.conditions).toContain("death:use-h100:1:2");
    expect(report.verdict).not.toBe("");
  });

  it.each([
    [["--policy", "best"], "--policy"],
    [["--trace", "nowhere.csv"], "--trace"],
    [["--fail", "rain:1:2"], "--fail"],
    [["--fail", "death:nobody:1:2"], "nobody"],
    [["--load", "much"], "--load"],
    [["--trace", "package.json", "--origin", "mars=1"], "mars"],
  ])("ends with 2 and names what is wrong: %s", async (args, named) => {
    const { code, error } = await simulate("--seconds", "1", "--load", "0.1", ...args);
    expect(code).toBe(2);
    expect(error).toContain(named);
  });
});

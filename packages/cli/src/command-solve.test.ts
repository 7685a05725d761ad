import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSimplex, randomInstance, type SolutionFile, writeProblemFile } from "@guidevane/optimizer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";

let folder = "";
const path = (name: string) => join(folder, name);

/** Two clusters of one class, an engine each; the second is 40 ms away from the first cluster. Demand in work units/s. */
const TWO = {
  format: "guidevane-problem-1",
  cells: { id: ["near", "far"], demandWps: [8, 2], shedMs: [60000, 60000] },
  engines: { id: ["a", "b"], capacityWps: [10, 10], curve: [0, 0] },
  curves: [{ kind: "linear", ms: 100 }],
  arcs: { cell: [0, 0, 1, 1], engine: [0, 1, 0, 1], costMs: [50, 90, 90, 50] },
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "guidevane-solve-"));
  await writeFile(path("two.json"), JSON.stringify(TWO));
  await writeFile(
    path("large.json"),
    JSON.stringify(writeProblemFile(randomInstance({ cells: 300, engines: 300, seed: 2 }))),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function solve(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const code = await runProgram(["solve", ...args], {
    out: (text) => {
      said.stdout += text;
    },
    err: (text) => {
      said.stderr += text;
    },
  });
  return { code, ...said };
}

const native = createSimplex("auto").kind === "native";
const SOLVERS = ["ts", "lp", ...(native ? ["native"] : [])];

describe("guidevane solve", { timeout: 60_000 }, () => {
  it.each(SOLVERS)("finds the known optimum with %s, and verifies it", async (solver) => {
    const { code, stdout } = await solve(path("two.json"), "--solver", solver, "--verify", "--json");
    expect(code).toBe(0);
    const answer = JSON.parse(stdout) as SolutionFile & { verified: { faults: string[] } };
    expect(answer.verified.faults).toEqual([]);
    // y·100·y/10 has the marginal 20·y: from a to b until 50 + 20·y_a = 90 + 20·y_b with y_a + y_b = 10, so y_a = 6.
    expect(answer.engines.loadWps[0]).toBeCloseTo(6, 2);
    expect(answer.engines.loadWps[1]).toBeCloseTo(4, 2);
    // 6·50 + 2·90 + 2·50 of the arcs, 10·36 + 10·16 of the engines.
    expect(answer.objectiveMs).toBeCloseTo(1100, 2);
    expect(answer.cells.priceMs[0]).toBeCloseTo(170, 0);
    expect(answer.arcs.weight[0]).toBeCloseTo(0.75, 2);
  });

  it("takes the example of the documentation, which is this one", async () => {
    const page = await readFile(new URL("../../../docs/problem-file.md", import.meta.url), "utf8");
    expect(JSON.parse(/```json\n([\s\S]*?)```/.exec(page)![1]!)).toEqual(TWO);
  });

  it("prints weights, shed, prices, bound, gap and time for a person", async () => {
    const { code, stdout } = await solve(path("two.json"), "--solver", "ts", "--verify");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^solved\nsolver {3}ts, [\d.e-]+ ms to solve, [\d.]+ ms to read\n/);
    expect(stdout).toContain("cost     110 ms a unit of work\nbound    110 ms");
    expect(stdout).toContain("shed     0 of 10 units of work a second");
    expect(stdout).toMatch(/^near +a +0\.7500 +6$/m);
    expect(stdout).toMatch(/^near +8 +0\.0 % +170$/m);
    expect(stdout).toMatch(/^a +6 +60\.0 % +120$/m);
    expect(stdout).toContain("verified: feasible");
  });

  it("starts from an earlier answer", async () => {
    const first = await solve(path("large.json"), "--solver", "ts", "--json");
    await writeFile(path("solution.json"), first.stdout);
    const again = await solve(
      path("large.json"),
      "--solver",
      "ts",
      "--warm",
      path("solution.json"),
      "--json",
      "--verify",
    );
    expect([first.code, again.code]).toEqual([0, 0]);
    const [before, after] = [first, again].map(({ stdout }) => JSON.parse(stdout) as SolutionFile);
    expect(after!.objectiveMs / before!.objectiveMs).toBeCloseTo(1, 9);
    const cold = await solve(path("large.json"), "--solver", "lp", "--warm", path("solution.json"));
    expect([cold.code, cold.stderr]).toEqual([
      2,
      expect.stringContaining("--warm: the linear programme starts from nothing"),
    ]);
  });

  it.each(SOLVERS.filter((solver) => solver !== "lp"))(
    "ends at its deadline with %s, with what it has and code 3",
    async (solver) => {
      const { code, stdout } = await solve(
        path("large.json"),
        "--solver",
        solver,
        "--deadline-ms",
        "0.5",
        "--verify",
        "--json",
      );
      expect(code).toBe(3);
      const answer = JSON.parse(stdout) as SolutionFile & { verified: { faults: string[] } };
      expect(answer.status).toBe("capped");
      expect(answer.message).toContain("stopped at the deadline");
      expect(answer.verified.faults).toEqual([]);
      expect(answer.gap).toBeGreaterThan(1e-9);
    },
  );

  it("names the field of an invalid problem, with code 4", async () => {
    await writeFile(path("bad.json"), JSON.stringify({ ...TWO, arcs: { ...TWO.arcs, engine: [0, 1, 0, 7] } }));
    const bad = await solve(path("bad.json"));
    expect([bad.code, bad.stdout]).toEqual([4, ""]);
    expect(bad.stderr).toContain("arcs.engine.3: must be an index below 2 (got 7)");
    const noWarm = await solve(path("two.json"), "--warm", path("two.json"));
    expect([noWarm.code, noWarm.stderr]).toEqual([4, expect.stringContaining("two.json: ")]);
  });

  it.each([
    ["no such file", ["/nowhere.json"], 'problem file: can\'t read "/nowhere.json" (no such file)'],
    [
      "an unknown solver",
      ["two.json", "--solver", "magic"],
      '--solver: must be one of auto, native, ts, lp (got "magic")',
    ],
    ["no time at all", ["two.json", "--deadline-ms", "0"], '--deadline-ms: must be milliseconds above 0 (got "0")'],
  ])("is refused %s, with code 2", async (_, [file, ...flags], says) => {
    const { code, stderr } = await solve(file!.startsWith("/") ? file! : path(file!), ...flags);
    expect([code, stderr]).toEqual([2, `guidevane: ${says}\n`]);
  });
});

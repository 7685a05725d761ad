import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "@guidevane/core";
import { cellKey, type PlanInputs, plan } from "@guidevane/optimizer";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createSolverPool, type Solver } from "./solver-pool.ts";
import { shareOut } from "./solver-threads.ts";
import { manyModelsFleet, testFleet } from "./testing/fleet.ts";

let folder: string;
let solver: Solver;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "guidevane-pool-"));
});
afterEach(() => solver.close());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A pool whose worker runs `body` for the demand it is given, which the tests use as a command. */
function poolOf(body: string): Solver {
  const path = join(folder, `worker-${Math.random()}.mjs`);
  writeFileSync(
    path,
    `export default async function (task) { if (task.kind === "load") return null; const command = task.inputs?.demandRps.get("command"); ${body} }`,
  );
  solver = createSolverPool(systemClock, pathToFileURL(path), 2);
  return solver;
}

async function inputs(command: number): Promise<PlanInputs> {
  return {
    wallMs: 0,
    fleet: await testFleet(),
    demandRps: new Map([["command", command]]),
    engines: new Map(),
    gateways: new Map(),
  };
}

const ANSWER = `return { status: "solved", message: String(command), publication: null, solver: "lp", solveMs: 1 };`;

describe("the solver pool", () => {
  it("gives the worker's plan", async () => {
    const outcome = await poolOf(ANSWER).solve(await inputs(7), null, null, 10_000);
    expect(outcome).toMatchObject({ kind: "plan", plan: { status: "solved", message: "7" } });
  });

  it("ends a solve that never looks at the time, and the next one works", async () => {
    const pool = poolOf(`if (command === 1) for (;;); ${ANSWER}`);
    expect(await pool.solve(await inputs(1), null, null, 50)).toMatchObject({ kind: "deadline" });
    expect(await pool.solve(await inputs(2), null, null, 10_000)).toMatchObject({
      kind: "plan",
      plan: { message: "2" },
    });
  });

  it("survives a worker that dies in a solve, and the next one works", async () => {
    const pool = poolOf(`if (command === 1) process.exit(3); ${ANSWER}`);
    expect(await pool.solve(await inputs(1), null, null, 10_000)).toMatchObject({ kind: "crashed" });
    expect(await pool.solve(await inputs(2), null, null, 10_000)).toMatchObject({
      kind: "plan",
      plan: { message: "2" },
    });
  });

  it("gives what a worker threw as a reason", async () => {
    const outcome = await poolOf(`throw new Error("no basis " + command);`).solve(await inputs(4), null, null, 10_000);
    expect(outcome).toEqual({ kind: "crashed", message: "no basis 4" });
  });

  it("says why when the worker can't even be loaded", async () => {
    solver = createSolverPool(systemClock, pathToFileURL(join(folder, "absent.mjs")));
    const outcome = await solver.solve(await inputs(1), null, null, 10_000);
    expect(outcome).toMatchObject({ kind: "crashed", message: expect.stringContaining("absent.mjs") });
  });

  it("gives the faults that the worker finds, and a reason where it can't look", async () => {
    const publication = { clusters: new Map(), problem: { n: 3 } };
    const pool = poolOf(
      `if (task.publication.problem.n === 4) process.exit(1); return ["n is " + task.publication.problem.n];`,
    );
    expect(await pool.verify(publication)).toEqual({ kind: "faults", faults: ["n is 3"] });
    expect(await pool.verify({ ...publication, problem: { n: 4 } })).toMatchObject({ kind: "crashed" });
  });

  it("ends the solve under way when it is closed", async () => {
    const pool = poolOf(`for (;;);`);
    const running = pool.solve(await inputs(1), null, null, 60_000);
    await pool.close();
    expect((await running).kind).not.toBe("plan");
  });

  it("solves parts in as many threads, and the first finishes", async () => {
    const pool = poolOf(`
      const { threadId } = await import("node:worker_threads");
      if (task.kind === "solve-parts") return task.parts.map(({ name }) => name + " of " + task.parts.length + " in " + threadId);
      if (task.kind === "finish") return { status: "solved", message: task.solved.join("; ") + "; finished in " + threadId };
      const problem = (arcs) => ({ arcEngine: new Uint32Array(arcs), demandWps: new Float64Array(1) });
      return { parts: [{ name: "a", problem: problem(2) }, { name: "b", problem: problem(9) }, { name: "c", problem: problem(3) }] };`);
    const outcome = await pool.solve(await inputs(1), null, null, 10_000);
    if (outcome.kind !== "plan") throw new Error(outcome.message);
    const said = /^a of 2 in (\d+); b of 1 in (\d+); c of 2 in (\d+); finished in (\d+)$/.exec(outcome.plan.message);
    expect(said?.slice(1)).toEqual([said?.[3], said?.[4], said?.[1], said?.[2]]);
    expect(said?.[1]).not.toBe(said?.[2]);
  });

  it("has no plan when one thread loses its parts, and the next solve works", async () => {
    const pool = poolOf(`
      const problem = { arcEngine: [], demandWps: [] };
      if (task.kind === "solve-parts") { if (task.parts[0].name === "b") process.exit(3); return [1]; }
      if (command === 1) return { parts: [{ name: "a", problem }, { name: "b", problem }] };
      ${ANSWER}`);
    expect(await pool.solve(await inputs(1), null, null, 10_000)).toMatchObject({ kind: "crashed" });
    expect(await pool.solve(await inputs(2), null, null, 10_000)).toMatchObject({ kind: "plan" });
  });

  it("comes to the plan of one thread when the models of a fleet are solved in two", async () => {
    const fleet = await manyModelsFleet({ models: 12, clusters: 20, enginesPerModel: 43 });
    const demandRps = new Map(
      [...fleet.clusters.keys()].flatMap((cluster, at) =>
        [...fleet.classes.keys()].map((name, of) => [cellKey(cluster, name), 20 + ((7 * at + 3 * of) % 11)] as const),
      ),
    );
    const all: PlanInputs = { ...(await inputs(0)), fleet, demandRps };
    solver = createSolverPool(systemClock, undefined, 2);
    const outcome = await solver.solve(all, null, null, 60_000);
    if (outcome.kind !== "plan") throw new Error(outcome.message);
    const alone = plan(all, null, null, { deadlineMs: null });
    expect(alone.status).toBe("solved");
    expect({ ...outcome.plan, solveMs: 0 }).toEqual({ ...alone, solveMs: 0 });
  });
});

describe("sharing parts out", () => {
  it("gives the largest first to whoever has least, and no thread nothing", () => {
    expect(shareOut([5, 1, 4, 3, 3], 2)).toEqual([
      [0, 4],
      [2, 3, 1],
    ]);
    expect(shareOut([7], 4)).toEqual([[0]]);
  });
});

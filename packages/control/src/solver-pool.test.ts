import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "@guidevane/core";
import type { PlanInputs } from "@guidevane/optimizer";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createSolverPool, type Solver } from "./solver-pool.ts";
import { testFleet } from "./testing/fleet.ts";

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
  solver = createSolverPool(systemClock, pathToFileURL(path));
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
});

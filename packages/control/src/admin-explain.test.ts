import type { Diff, Explanation, WhatIf } from "@guidevane/optimizer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperatorAnswer } from "./admin-operator.ts";
import type { PlanFigures } from "./cluster-figures.ts";
import { type RunningControl, startControl } from "./start-control.ts";
import { testFleet } from "./testing/fleet.ts";
import { errorOf, post, until } from "./testing/harness.ts";
import { serve, type TestServer } from "./testing/http.ts";
import { MemoryStore, TestLogger } from "./testing/parts.ts";

/** With the real solver and the real analyst, each in its worker thread. */
let engine: TestServer;
let control: RunningControl;
beforeAll(async () => {
  engine = await serve((_request, response) => void response.end());
  control = await startControl({
    fleet: await testFleet({ e1: engine.port, e2: engine.port }, "policy: { tickMs: 100, slots: 256, solveMs: 20000 }"),
    store: new MemoryStore(),
    adminHost: "127.0.0.1",
    adminPort: 0,
    logger: new TestLogger(),
  });
  await (await fetch(`${control.adminUrl}/v1/snapshot?cluster=east&wait=50`)).arrayBuffer();
}, 60_000);
afterAll(async () => {
  await control.stop();
  await engine.close();
});

const get = (path: string) => fetch(`${control.adminUrl}${path}`);

describe("GET /v1/explain", { timeout: 60_000 }, () => {
  it("gives the addends of every engine, which sum to the cell's price where it is used", async () => {
    const explanation = (await (await get("/v1/explain?cluster=east&class=chat")).json()) as Explanation;
    expect(explanation).toMatchObject({ cluster: "east", class: "chat", version: 1, demandRps: 7, shed: 0 });
    expect(explanation.engines.map((each) => each.engine).sort()).toEqual(["e1", "e2"]);
    for (const each of explanation.engines) {
      const sum = Object.values(each.addends).reduce((total, addend) => total + addend, 0);
      expect(sum - each.reducedCostMs).toBeCloseTo(explanation.demandPriceMs, 6);
      if (each.isUsed) expect(Math.abs(each.reducedCostMs)).toBeLessThan(0.1);
    }
    expect(explanation.sentence).toContain("east sends chat");
  });

  it("gives one engine, by its name", async () => {
    const one = (await (await get("/v1/explain?cluster=west&class=chat&engine=e1&version=1")).json()) as Explanation;
    expect(one.engines.map((each) => each.engine)).toEqual(["e1"]);
    expect(one.sentence).toContain("e1 gets");
  });

  it("gives mean latency, detour and shed share of every cluster where no cell is named", async () => {
    const whole = (await (await get("/v1/explain")).json()) as PlanFigures & { operator: OperatorAnswer };
    expect(whole.clusters.map((each) => each.cluster)).toEqual(["east", "west"]);
    expect(whole.clusters[0]).toMatchObject({ demandRps: 7, shed: 0 });
    expect(whole.clusters[0]!.meanLatencyMs).toBeGreaterThan(0);
    expect(whole.operator).toMatchObject({ frozen: false, pins: [] });
  });

  it.each([
    ["a cluster that is not there", "cluster=north&class=chat", 404, "north is not a cluster; known: east, west"],
    ["a class that is not there", "cluster=east&class=x", 404, "x is not a class of east; known: chat"],
    ["an engine that is not there", "cluster=east&class=chat&engine=e9", 404, "e9 is not an engine; known: e1, e2"],
    ["half a cell", "cluster=east", 400, "both a cluster and a class"],
    ["a version that is not kept", "version=77", 404, "version 77 is not kept"],
    ["a version that is none", "version=-1", 400, 'version must be a version, 1 or more (got "-1")'],
  ])("refuses %s", async (_, query, status, says) => {
    const error = await errorOf(await get(`/v1/explain?${query}`));
    expect([error.status, error.message]).toEqual([status, expect.stringContaining(says)]);
  });
});

describe("advice", { timeout: 60_000 }, () => {
  it("is explained as a publication would be, and said not to be one", async () => {
    const logger = new TestLogger();
    const adviser = await startControl({
      fleet: await testFleet({ e1: engine.port, e2: engine.port }, "policy: { slots: 256, solveMs: 20000 }"),
      store: new MemoryStore(),
      adminHost: "127.0.0.1",
      adminPort: 0,
      logger,
      advise: true,
    });
    const ask = (query = "") => fetch(`${adviser.adminUrl}/v1/explain${query}`);
    const before = await errorOf(await ask());
    expect([before.status, before.code]).toEqual([503, "no_snapshot"]);
    await until(async () => (await ask()).status === 200, 100_000);
    expect(await (await ask()).json()).toMatchObject({ version: null, published: false, operator: { advise: true } });
    const cell = (await (await ask("?cluster=east&class=chat")).json()) as Explanation;
    expect(cell).toMatchObject({ cluster: "east", published: false });
    expect(cell.engines).toHaveLength(2);
    await adviser.stop();
  });
});

describe("POST /v1/what-if and GET /v1/diff", { timeout: 60_000 }, () => {
  it("plan in another thread, so that the loop goes on, and publish nothing", async () => {
    const reply = await post(`${control.adminUrl}/v1/what-if`, { changes: [{ kind: "drain", engine: "e2" }] });
    const answer = (await reply.json()) as WhatIf;
    expect(answer.status).toBe("solved");
    const e2 = answer.engines.find(({ engine }) => engine === "e2")!;
    expect([e2.capacityWps.before, e2.capacityWps.after]).toEqual([120, 0]);
    const diff = (await (await get("/v1/diff?from=1&to=1")).json()) as Diff;
    expect(diff).toMatchObject({ from: 1, to: 1, why: "nothing was published before", weights: [] });
    expect(((await (await get("/v1/operator")).json()) as OperatorAnswer).version).toBe(1);
  });

  it.each([
    ["no changes", { changes: [] }, "changes: "],
    ["an unknown kind", { changes: [{ kind: "flood" }] }, "changes.0.kind: "],
    ["a factor below 0", { changes: [{ kind: "demand", factor: -1 }] }, "changes.0.factor: "],
    ["an unknown key", { changes: [{ kind: "drain", engine: "e1", now: true }] }, "changes.0: "],
    [
      "a new engine like none",
      { changes: [{ kind: "new-engine", engine: "e3", like: "e9" }] },
      'changes.0.like: is not an engine of the fleet file; known: e1, e2 (got "e9")',
    ],
  ])("refuse %s, naming the field", async (_, body, says) => {
    const error = await errorOf(await post(`${control.adminUrl}/v1/what-if`, body));
    expect([error.status, error.code]).toEqual([400, "bad_what_if"]);
    expect(error.message).toContain(says);
  });

  it("refuse a diff that does not name two versions", async () => {
    const error = await errorOf(await get("/v1/diff?from=1"));
    expect([error.status, error.message]).toEqual([400, "the query must name two versions: ?from=V1&to=V2"]);
  });
});

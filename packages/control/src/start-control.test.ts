import { createHash } from "node:crypto";
import { request, type ServerResponse } from "node:http";
import { gunzipSync } from "node:zlib";
import { type DemandReport, GuidevaneError, ManualClock, parseClusterSnapshot } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineAnswer } from "./engine-answers.ts";
import type { SolveOutcome, VerifyOutcome } from "./solver-pool.ts";
import { type RunningControl, startControl } from "./start-control.ts";
import { testFleet } from "./testing/fleet.ts";
import { feedEvents, nextEvent, serve, type TestServer } from "./testing/http.ts";
import { MemoryStore, TestLogger, TestSolver } from "./testing/parts.ts";

const SECOND = 1000;

let e1: TestServer;
let e2: TestServer;
let clock: ManualClock;
let store: MemoryStore;
let solver: TestSolver;
let logger: TestLogger;
let control: RunningControl | undefined;
let e2Status: number;
let e2Metrics: string;

beforeEach(async () => {
  e2Status = 200;
  e2Metrics = "";
  e1 = await serve((request, response) => respond(request.url, 200, "", response));
  e2 = await serve((request, response) => respond(request.url, e2Status, e2Metrics, response));
  clock = new ManualClock();
  store = new MemoryStore();
  solver = new TestSolver();
  logger = new TestLogger();
});

function respond(url: string | undefined, health: number, more: string, response: ServerResponse): void {
  if (url === "/metrics") response.end(`${METRICS}${more}`);
  else response.writeHead(health).end();
}

const METRICS = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.5\n";

afterEach(async () => {
  await control?.stop();
  control = undefined;
  await e1.close();
  await e2.close();
});

async function start(more: { adminHost?: string; adminToken?: string } = {}): Promise<string> {
  control = await startControl({
    fleet: await testFleet({ e1: e1.port, e2: e2.port }),
    store,
    adminHost: "127.0.0.1",
    adminPort: 0,
    logger,
    clock,
    random: () => 0.5,
    solver,
    ...more,
  });
  return control.adminUrl;
}

/** Starts and waits for the first publication, as a gateway would. */
async function started(): Promise<string> {
  const url = await start();
  const reply = await fetch(`${url}/v1/snapshot?cluster=east&wait=30`);
  expect(reply.status).toBe(200);
  await reply.arrayBuffer();
  return url;
}

async function errorOf(reply: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await reply.json()) as { error: { code: string; message: string; type: string } };
  expect(error.type).toMatch(/_error$/);
  return { status: reply.status, code: error.code, message: error.message };
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
}

function demand(offered: number, seq: number, more: Partial<DemandReport> = {}): DemandReport {
  const classes = { chat: { offered, work: 2 * offered, retries: 0, clientRetries: 0, shed: 0 } };
  return { gateway: "g1", cluster: "east", seq, windowMs: SECOND, classes, engines: {}, ...more };
}

describe("GET /v1/snapshot", () => {
  it("gives the cluster's snapshot, gzipped, with its tag and the checksum of its JSON", async () => {
    const url = await started();
    const raw = await new Promise<{ headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
      request(`${url}/v1/snapshot?cluster=east`, { headers: { "accept-encoding": "gzip" } }, (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () => resolve({ headers: res.headers, body: Buffer.concat(chunks) }));
      })
        .on("error", reject)
        .end();
    });
    expect(raw.headers).toMatchObject({ etag: '"1-1"', "content-encoding": "gzip" });
    const json = gunzipSync(raw.body).toString();
    expect(raw.headers["x-guidevane-checksum"]).toBe(createHash("sha256").update(json).digest("hex"));
    const snapshot = parseClusterSnapshot(json);
    expect(snapshot).toMatchObject({ cluster: "east", version: 1, epoch: 1 });
    expect(snapshot.cells[0]?.demandRps).toBe(7);
  });

  it("is plain to a caller that does not take gzip", async () => {
    const url = await started();
    const reply = await fetch(`${url}/v1/snapshot?cluster=west`, { headers: { "accept-encoding": "identity" } });
    expect(reply.headers.get("content-encoding")).toBeNull();
    expect(parseClusterSnapshot(await reply.text()).cluster).toBe("west");
  });

  it("is 503 no_snapshot before the first publication, and comes as soon as there is one to who waits", async () => {
    let publish = () => {};
    const held = new Promise<void>((resolve) => {
      publish = resolve;
    });
    solver.outcome = async (inputs) => {
      await held;
      solver.outcome = null;
      return solver.solve(inputs);
    };
    const begun = solver.next();
    const url = await start();
    await begun;
    expect(await errorOf(await fetch(`${url}/v1/snapshot?cluster=east`))).toMatchObject({
      status: 503,
      code: "no_snapshot",
    });
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=30`);
    publish();
    expect((await waiting).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it("is 304 at once to who has it, and with `wait` only when the time is up", async () => {
    const url = await started();
    const headers = { "if-none-match": '"1-1"' };
    expect((await fetch(`${url}/v1/snapshot?cluster=east`, { headers })).status).toBe(304);
    const several = { "if-none-match": 'W/"0-9", W/"1-1"' };
    expect((await fetch(`${url}/v1/snapshot?cluster=east`, { headers: several })).status).toBe(304);

    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=2`, { headers });
    await arrived(url);
    clock.advance(2 * SECOND);
    expect((await waiting).status).toBe(304);

    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers });
    await arrived(url);
    clock.advance(3 * SECOND);
    const reply = await newer;
    expect([reply.status, reply.headers.get("etag")]).toEqual([200, '"1-2"']);
    await events.return(undefined);
  });

  it.each([
    ["/v1/snapshot", 400, "bad_request"],
    ["/v1/snapshot?cluster=nowhere", 404, "unknown_cluster"],
    ["/v1/snapshot?cluster=east&wait=soon", 400, "bad_request"],
    ["/v1/nothing", 404, "not_found"],
    ["/v1/demand", 405, "method_not_allowed"],
  ])("refuses %s with %i %s", async (path, status, code) => {
    expect(await errorOf(await fetch((await start()) + path))).toMatchObject({ status, code });
  });
});

/** Resolves when the server has taken in all that was sent before it. */
async function arrived(url: string): Promise<void> {
  await (await fetch(`${url}/healthz`)).arrayBuffer();
}

describe("GET /v1/feed", () => {
  it("begins with the present state and then tells of each publication", async () => {
    const url = await started();
    const reply = await fetch(`${url}/v1/feed?cluster=east`);
    expect(reply.headers.get("content-type")).toBe("text/event-stream");
    const events = feedEvents(reply.body!);
    expect(await nextEvent(events, "snapshot")).toEqual({ tag: "1-1" });
    const { engines } = await nextEvent(events, "signals");
    expect(engines.e1?.running).toEqual({ value: 3, state: "fresh", ageMs: 0 });
    expect(await nextEvent(events, "engines")).toEqual({ engines: {} });
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 0 });
    clock.advance(5 * SECOND);
    expect(await nextEvent(events, "snapshot")).toEqual({ tag: "1-2" });
    await events.return(undefined);
  });

  it("tells of live gateways as they come", async () => {
    const url = await started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 0 });
    await post(`${url}/v1/demand`, demand(5, 1));
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 1 });
    await post(`${url}/v1/demand`, demand(5, 1, { gateway: "g2" }));
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 2 });
    await events.return(undefined);
  });
});

describe("POST /v1/engines/:id/drain and /out", () => {
  it("is stored, told to the gateways at once, and planned with before the next tick is due", async () => {
    const url = await started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    expect(await nextEvent(events, "engines")).toEqual({ engines: {} });
    const reply = await post(`${url}/v1/engines/e1/drain`, { on: true });
    expect(await reply.json()).toEqual({ id: "e1", adminState: "draining" });
    expect(await nextEvent(events, "engines")).toEqual({ engines: { e1: "draining" } });
    expect(store.operator).toEqual({ engines: { e1: "draining" } });
    const planned = solver.next();
    clock.advance(SECOND);
    expect((await planned).engines.get("e1")?.adminState).toBe("draining");

    const answers = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
    expect(answers.map(({ id, health }) => [id, health])).toEqual([
      ["e1", "draining"],
      ["e2", "ready"],
    ]);
    await events.return(undefined);
  });

  it("lifts one word without touching the other", async () => {
    const url = await started();
    await post(`${url}/v1/engines/e1/out`, { on: true });
    expect(await (await post(`${url}/v1/engines/e1/drain`, { on: false })).json()).toMatchObject({ adminState: "out" });
    expect(await (await post(`${url}/v1/engines/e1/out`, { on: false })).json()).toMatchObject({
      adminState: "active",
    });
    expect(store.operator).toEqual({ engines: {} });
  });

  it("holds after a restart", async () => {
    store.operator = { engines: { e2: "out" } };
    const planned = solver.next();
    await start();
    expect((await planned).engines.get("e2")?.adminState).toBe("out");
  });

  it.each([
    ["an engine that is not in the fleet", "e9", '{"on":true}', 404, "unknown_engine"],
    ["a word that is no boolean", "e1", '{"on":"yes"}', 400, "bad_request"],
    ["a body that is not JSON", "e1", "not json", 400, "bad_request"],
    ["a body over 1 MiB", "e1", `"${"x".repeat(1_048_576)}"`, 413, "body_too_large"],
  ])("refuses %s", async (_title, id, body, status, code) => {
    const url = await started();
    expect(await errorOf(await post(`${url}/v1/engines/${id}/drain`, body))).toMatchObject({ status, code });
    expect(store.operator).toEqual({ engines: {} });
  });
});

describe("POST /v1/demand", () => {
  it("is what the next tick plans with", async () => {
    const url = await started();
    for (let seq = 1; seq <= 3; seq++) {
      const reply = await post(`${url}/v1/demand`, demand(40, seq));
      expect(await reply.json()).toEqual({ gateways: 1 });
    }
    const planned = solver.next();
    clock.advance(5 * SECOND);
    const inputs = await planned;
    expect(inputs.demandRps.get("east\nchat")).toBe(40);
    expect(inputs.gateways).toEqual(
      new Map([
        ["east", 0],
        ["west", 0],
      ]),
    );
  });

  it("brings an engine's severity from the gateways' failing factors, never from slowness", async () => {
    const url = await started();
    const found = { attempts: 10, faults: 4, failFactor: 0.6, slowFactor: 0.02, dead: false, ttftRatio: 3, rttMs: 1 };
    await post(`${url}/v1/demand`, demand(1, 1, { engines: { e1: found } }));
    const [answer] = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
    expect(answer?.penalty.factor).toBeCloseTo(0.6, 9);
    expect(answer?.penalty.evidence).toEqual({ attempts: 10, faults: 4, gateways: 1 });
  });

  it.each([
    ["a field that is missing", (({ seq: _, ...rest }) => rest)(demand(1, 1)), "seq"],
    ["a cluster that is not in the fleet", demand(1, 1, { cluster: "mars" }), "mars"],
  ])("refuses %s and names it", async (_title, report, named) => {
    const url = await started();
    const error = await errorOf(await post(`${url}/v1/demand`, report));
    expect(error).toMatchObject({ status: 400, code: "bad_demand" });
    expect(error.message).toContain(named);
  });
});

describe("GET /v1/engines and /metrics", () => {
  it("shows shares by cluster and class, signals with state and age, and health with its reason", async () => {
    const url = await started();
    clock.advance(SECOND);
    const [first] = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
    expect(first).toMatchObject({
      id: "e1",
      health: "ready",
      healthReason: "http 200",
      share: { east: { chat: 0.5 }, west: { chat: 0.5 } },
      inFlight: 4,
      penalty: { factor: 1, evidence: null },
      signals: {
        running: { value: 3, state: "fresh", ageMs: SECOND },
        kvUsage: { value: 0.5, state: "fresh" },
        readyReplicas: { value: null, state: "not-offered", ageMs: null },
      },
    });
  });

  it("counts and measures under the names that are promised", async () => {
    const url = await started();
    clock.advance(SECOND);
    const reply = await fetch(`${url}/metrics`);
    expect(reply.headers.get("content-type")).toContain("text/plain");
    const lines = (await reply.text()).split("\n");
    for (const line of [
      'guidevane_publish_total{result="published"} 1',
      "guidevane_gap_ratio 0.01",
      'guidevane_demand_rps{cluster="east",class="chat"} 7',
      'guidevane_engine_load_ratio{engine="e1"} 0.25',
      'guidevane_engine_capacity_price_ms{engine="e1"} 2',
      'guidevane_scrape_total{engine="e1",result="ok"} 1',
      'guidevane_signal_state{engine="e1",signal="running",state="fresh"} 1',
      'guidevane_signal_state{engine="e1",signal="running",state="missing"} 0',
      'guidevane_solve_seconds_count{solver="lp"} 1',
      "guidevane_leader 1",
    ])
      expect(lines).toContain(line);
  });
});

describe("an engine that is lost", () => {
  it("is planned without at once, and with again at once after its return", async () => {
    const url = await started();
    const plannedReady = () => solver.seen.at(-1)?.engines.get("e2")?.readyReplicas;
    e2Status = 503;
    await roundsUntil(async () => (await healthOf(url, "e2")) === "dead");
    const lostMs = clock.nowMs();
    await roundsUntil(async () => (await healthOf(url, "e2")) === "dead" && plannedReady() === 0);
    expect(clock.nowMs() - lostMs).toBeLessThan(SECOND);

    e2Status = 200;
    await roundsUntil(async () => (await healthOf(url, "e2")) === "ready");
    const backMs = clock.nowMs();
    await roundsUntil(async () => (await healthOf(url, "e2")) === "ready" && plannedReady() === 2);
    expect(clock.nowMs() - backMs).toBeLessThan(SECOND);
  });
});

function metrics(url: string): Promise<string> {
  return fetch(`${url}/metrics`).then((reply) => reply.text());
}

/** Looks again each time that the server has answered, until the condition holds. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await condition()); looks++) {
    if (looks > 500) throw new Error("the condition never held");
    await new Promise(setImmediate);
  }
}

describe("an engine whose replicas are lost", () => {
  it("is told to the gateways, planned with at once, and out at none", async () => {
    e2Metrics = "guidevane_emulator_ready_replicas 2\n";
    const url = await started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=west`)).body!);
    const told = async () => (await nextEvent(events, "signals")).engines.e2?.readyReplicas.value;
    expect(await told()).toBe(2);
    const planned = () => solver.seen.at(-1)?.engines.get("e2")?.readyReplicas;
    expect(planned()).toBe(2);

    e2Metrics = "guidevane_emulator_ready_replicas 0\n";
    await roundsUntil(async () => (await healthOf(url, "e2")) === "not-ready");
    const lostMs = clock.nowMs();
    await roundsUntil(async () => (await healthOf(url, "e2")) === "not-ready" && planned() === 0);
    expect(clock.nowMs() - lostMs).toBeLessThan(SECOND);
    while ((await told()) !== 0);
    await events.return(undefined);
  });
});

/** Lets probe rounds fall due one after another until the condition holds. */
async function roundsUntil(condition: () => Promise<boolean>): Promise<void> {
  for (let rounds = 0; !(await condition()); rounds++) {
    if (rounds > 200) throw new Error("the condition never held");
    clock.advance(100);
  }
}

async function healthOf(url: string, id: string): Promise<string | undefined> {
  const answers = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
  return answers.find((each) => each.id === id)?.health;
}

describe("a tick that fails", () => {
  it.each([
    ["the solver is past its deadline", "solve-failed", () => failSolve({ kind: "deadline", message: "ended" })],
    ["the worker dies", "solve-failed", () => failSolve({ kind: "crashed", message: "exit 3" })],
    ["the problem is invalid", "solve-failed", () => failSolve(noPlan("invalid"))],
    ["the verifier finds a fault", "verify-failed", () => failVerify({ kind: "faults", faults: ["gap is 3, not 2"] })],
    ["the verifier dies", "verify-failed", () => failVerify({ kind: "crashed", message: "exit 3" })],
    ["the store is full", "store-failed", () => failStore(new Error("ENOSPC"))],
  ])("keeps the last good snapshot when %s, counts each and logs once", async (_title, result, breakIt) => {
    const url = await started();
    breakIt();
    for (let i = 1; i <= 3; i++) {
      clock.advance(5 * SECOND);
      await until(async () => (await metrics(url)).includes(`guidevane_publish_total{result="${result}"} ${i}`));
    }
    expect((await fetch(`${url}/v1/snapshot?cluster=east`)).headers.get("etag")).toBe('"1-1"');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(logger.warnings).toHaveLength(1);

    solver.outcome = null;
    solver.verdict = { kind: "faults", faults: [] };
    store.failPut = null;
    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    await arrived(url);
    clock.advance(5 * SECOND);
    expect((await newer).headers.get("etag")).toBe('"1-2"');
    await until(async () => logger.lines.at(-1)?.message === "ticks publish again");
  });

  const failSolve = (outcome: SolveOutcome) => {
    solver.outcome = () => outcome;
  };
  const failVerify = (verdict: VerifyOutcome) => {
    solver.verdict = verdict;
  };
  const failStore = (error: Error) => {
    store.failPut = error;
  };
  const noPlan = (status: "invalid"): SolveOutcome => ({
    kind: "plan",
    plan: { status, message: "demand is NaN", publication: null, solver: "lp", solveMs: 1 },
  });

  it("keeps it when the store refuses, and takes another writer's publication over", async () => {
    const url = await started();
    const theirs = { ...store.stored!, version: 9, epoch: 4 };
    store.stored = theirs;
    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    await arrived(url);
    clock.advance(5 * SECOND);
    expect((await newer).headers.get("etag")).toBe('"4-9"');
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("guidevane_leader 0");
  });
});

describe("who may speak to it", () => {
  it("refuses to start on an address that is not loopback without a token", async () => {
    const error = await start({ adminHost: "0.0.0.0" }).catch((thrown: unknown) => thrown);
    expect(GuidevaneError.is(error) && error.code).toBe("bad_usage");
    expect(String(error)).toContain("GUIDEVANE_ADMIN_TOKEN");
  });

  it("asks for the token everywhere but at the probes and the page", async () => {
    const url = await start({ adminToken: "s3cret" });
    for (const path of ["/v1/engines", "/v1/snapshot?cluster=east", "/metrics", "/v1/feed?cluster=east"])
      expect(await errorOf(await fetch(url + path))).toMatchObject({ status: 401, code: "unauthorized" });
    const wrong = await fetch(`${url}/v1/engines`, { headers: { authorization: "Bearer s3cre" } });
    expect(wrong.status).toBe(401);
    expect(wrong.headers.get("www-authenticate")).toBe("Bearer");
    expect((await fetch(`${url}/v1/engines`, { headers: { authorization: "Bearer s3cret" } })).status).toBe(200);
    for (const path of ["/healthz", "/"]) expect((await fetch(url + path)).status).toBe(200);
  });

  it("refuses web pages of other sites where no token guards it", async () => {
    const url = await started();
    const foreign = await post(`${url}/v1/engines/e1/out`, { on: true }, { origin: "https://evil.example" });
    expect(await errorOf(foreign)).toMatchObject({ status: 403, code: "foreign_origin" });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${url}/v1/engines`, { headers: { host: "rebound.example:80" } }, (res) => {
        res.resume();
        resolve(res.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
    expect((await post(`${url}/v1/engines/e1/out`, { on: true }, { origin: url })).status).toBe(200);
  });

  it("says which address is taken", async () => {
    const url = await start();
    const first = control;
    control = undefined;
    const port = Number(new URL(url).port);
    const second = startControl({
      fleet: await testFleet(),
      store,
      adminHost: "127.0.0.1",
      adminPort: port,
      logger,
      clock,
      solver: new TestSolver(),
    });
    await expect(second).rejects.toMatchObject({ code: "bad_usage", message: expect.stringContaining(`:${port}`) });
    await first!.stop();
  });
});

describe("stopping", () => {
  it("ends feeds and waiting callers, and closes the port", async () => {
    const url = await started();
    const feed = await fetch(`${url}/v1/feed?cluster=east`);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    const outcome = waiting.then(
      (reply) => reply.status,
      () => "cut",
    );
    await arrived(url);
    await control!.stop();
    control = undefined;
    await feed.text();
    expect(await outcome).toBe("cut");
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });
});

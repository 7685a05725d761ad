import { GuidevaneError } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SolveOutcome, VerifyOutcome } from "./solver-pool.ts";
import { arrived, demand, errorOf, Harness, healthOf, metrics, post, SECOND, until } from "./testing/harness.ts";
import { feedEvents, nextEvent } from "./testing/http.ts";
import { OPEN } from "./testing/parts.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

/** An hour between ticks: one that comes within a test was not waited for. */
const RARE_TICKS = "policy: { tickMs: 3600000 }";

describe("an engine that is lost", () => {
  it("is planned without at once, and with again at once after its return", async () => {
    test.fleetMore = RARE_TICKS;
    const url = await test.started();
    const plannedReady = () => test.solver.seen.at(-1)?.engines.get("e2")?.readyReplicas;
    test.e2Status = 503;
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "dead");
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "dead" && plannedReady() === 0);

    test.e2Status = 200;
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "ready");
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "ready" && plannedReady() === 2);
  });
});

describe("an engine whose replicas are lost", () => {
  it("is told to the gateways, planned with at once, and out at none", async () => {
    test.fleetMore = RARE_TICKS;
    test.e2Metrics = "guidevane_emulator_ready_replicas 2\n";
    const url = await test.started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=west`)).body!);
    const told = async () => (await nextEvent(events, "signals")).engines.e2?.readyReplicas.value;
    expect(await told()).toBe(2);
    // By its probe and by its metrics.
    expect(test.logger.lines.filter(({ message }) => message === "engine e2 is ready")).toHaveLength(1);
    const planned = () => test.solver.seen.at(-1)?.engines.get("e2")?.readyReplicas;
    expect(planned()).toBe(2);

    test.e2Metrics = "guidevane_emulator_ready_replicas 0\n";
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "not-ready");
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "not-ready" && planned() === 0);
    while ((await told()) !== 0);
    await events.return(undefined);
  });
});

describe("an engine that sleeps", () => {
  it("B083: is told to gateways as one without a replica and planned with none, though it is healthy by its own word", async () => {
    test.fleetMore = RARE_TICKS;
    const state = (awake: number) => `vllm:engine_sleep_state{engine="0",sleep_state="awake"} ${awake}\n`;
    test.e2Metrics = state(1);
    const url = await test.started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=west`)).body!);
    const planned = () => test.solver.seen.at(-1)?.engines.get("e2")?.readyReplicas;
    expect([await healthOf(url, "e2"), planned()]).toEqual(["ready", 2]);

    test.e2Metrics = state(0);
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "not-ready" && planned() === 0);
    while ((await nextEvent(events, "signals")).engines.e2?.readyReplicas.value !== 0);
    await events.return(undefined);

    test.e2Metrics = state(1);
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "ready" && planned() === 2);
  });
});

describe("a control plane that is cut off from every engine", () => {
  it("plans as if they lived and says so, until a gateway calls one dead", async () => {
    const url = await test.started();
    const planned = () => [...(test.solver.seen.at(-1)?.engines.values() ?? [])].map((each) => each.readyReplicas);
    test.e1Status = 502;
    test.e2Status = 502;
    const cutOff = () => test.logger.warnings.some((each) => each.includes("planned as configured: e1, e2"));
    await test.roundsUntil(async () => (await healthOf(url, "e1")) === "unknown" && cutOff());
    expect(planned()).toEqual([1, 2]);

    const found = { attempts: 0, faults: 0, failFactor: 1, slowFactor: 1, dead: true, ttftRatio: null, rttMs: null };
    await post(`${url}/v1/demand`, demand(1, 1, { engines: { e2: found } }));
    expect(await healthOf(url, "e1")).toBe("dead");
    // The word of a gateway alone brings a tick.
    await test.roundsUntil(
      async () => (await healthOf(url, "e1")) === "dead" && planned().every((ready) => ready === 0),
    );
  });
});

describe("a cluster that is heard again", () => {
  it("is planned for at once, since what was published meanwhile was made for none of its demand", async () => {
    test.fleetMore = RARE_TICKS;
    const url = await test.started();
    const ticksAfter = async (seq: number): Promise<number> => {
      const before = test.solver.seen.length;
      // A tick that is under way puts off the next one.
      await until(async () => (await fetch(`${url}/v1/snapshot?cluster=east`)).headers.get("etag") === `"1-${before}"`);
      await post(`${url}/v1/demand`, demand(5, seq));
      test.clock.advance(SECOND);
      await arrived(url);
      return test.solver.seen.length - before;
    };
    expect(await ticksAfter(1)).toBe(1);
    test.clock.advance(700 * SECOND);
    expect(await ticksAfter(2)).toBe(1);
    expect(await ticksAfter(3)).toBe(0);
  });
});

describe("a tick that fails", () => {
  it.each([
    ["the solver is past its deadline", "solve-failed", () => failSolve({ kind: "deadline", message: "ended" })],
    ["the worker dies", "solve-failed", () => failSolve({ kind: "crashed", message: "exit 3" })],
    ["the problem is invalid", "solve-failed", () => failSolve(noPlan("invalid"))],
    ["the verifier finds a fault", "verify-failed", () => failVerify({ kind: "faults", faults: ["gap is 3, not 2"] })],
    ["the verifier dies", "verify-failed", () => failVerify({ kind: "crashed", message: "exit 3" })],
    ["the store is full", "store-failed", () => failStore(new Error("ENOSPC"))],
  ])("keeps the last good snapshot when %s, counts each and logs once", async (_title, result, breakIt) => {
    const url = await test.started();
    breakIt();
    for (let i = 1; i <= 3; i++) {
      test.clock.advance(5 * SECOND);
      await until(async () => (await metrics(url)).includes(`guidevane_publish_total{result="${result}"} ${i}`));
    }
    expect((await fetch(`${url}/v1/snapshot?cluster=east`)).headers.get("etag")).toBe('"1-1"');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(test.logger.warnings).toHaveLength(1);

    test.solver.outcome = null;
    test.solver.verdict = { kind: "faults", faults: [] };
    test.store.failPut = null;
    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    await arrived(url);
    test.clock.advance(5 * SECOND);
    expect((await newer).headers.get("etag")).toBe('"1-2"');
    await until(async () => test.logger.lines.at(-1)?.message === "ticks publish again");
  });

  const failSolve = (outcome: SolveOutcome) => {
    test.solver.outcome = () => outcome;
  };
  const failVerify = (verdict: VerifyOutcome) => {
    test.solver.verdict = verdict;
  };
  const failStore = (error: Error) => {
    test.store.failPut = error;
  };
  const noPlan = (status: "invalid"): SolveOutcome => ({
    kind: "plan",
    plan: {
      status,
      message: "demand is NaN",
      publication: null,
      gate: OPEN,
      warm: null,
      solver: "lp",
      degraded: "",
      solveMs: 1,
    },
  });

  it("B153: publishes nothing and fails nothing when the present weights will do, and gateways hear that it lives", async () => {
    const url = await test.started();
    const bound = { objectiveMs: 400, lowerBoundMs: 399, gapMs: 1, gap: 0.0025 };
    const gate = { held: true, why: "", certificate: { ...bound, churnFree: bound } };
    const plan = { status: "held", message: "", publication: null, gate, warm: null, solver: "ts" } as const;
    failSolve({ kind: "plan", plan: { ...plan, degraded: "", solveMs: 1 } });
    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=8`, { headers: { "if-none-match": '"1-1"' } });
    await arrived(url);
    test.clock.advance(5 * SECOND);
    await until(async () => (await metrics(url)).includes('guidevane_publish_total{result="held"} 1'));
    expect(await metrics(url)).toContain("guidevane_gap_ratio 0.0025");
    expect(test.store.stored).toMatchObject({ version: 1 });
    test.clock.advance(4 * SECOND);
    // The wait ends in an answer all the same: that is what a snapshot's age counts from.
    expect((await newer).status).toBe(304);
    expect(test.logger.warnings).toEqual([]);
  });

  it("keeps it when the store refuses, and takes another writer's publication over", async () => {
    const url = await test.started();
    const theirs = { ...test.store.stored!, version: 9, epoch: 4 };
    test.store.stored = theirs;
    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    await arrived(url);
    test.clock.advance(5 * SECOND);
    expect((await newer).headers.get("etag")).toBe('"4-9"');
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("guidevane_leader 0");
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it("says once that another has taken the store over, is not ready, and takes no operator's word from then on", async () => {
    const url = await test.started();
    test.store.failPut = new GuidevaneError("store_replaced", "a writer of epoch 9 has replaced this one of epoch 1");
    for (let ticks = 1; ticks <= 2; ticks++) {
      test.clock.advance(5 * SECOND);
      await until(async () =>
        (await metrics(url)).includes(`guidevane_publish_total{result="store-conflict"} ${ticks}`),
      );
    }
    expect(test.logger.warnings).toEqual([
      expect.stringMatching(/^another control plane has taken this store over: .*epoch 9/),
    ]);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/v1/snapshot?cluster=east`)).status).toBe(200);
    for (const path of ["freeze", "rollback", "pins", "engines/e1/drain", "engines/e1/out"]) {
      const error = await errorOf(await fetch(`${url}/v1/${path}`, { method: "POST", body: '{"on":true}' }));
      expect([error.status, error.code]).toEqual([409, "replaced"]);
    }
  });
});

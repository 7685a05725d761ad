import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineAnswer } from "./engine-answers.ts";
import { arrived, demand, errorOf, Harness, post, SECOND } from "./testing/harness.ts";
import { feedEvents, nextEvent } from "./testing/http.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

describe("GET /v1/feed", () => {
  it("begins with the present state and then tells of each publication", async () => {
    const url = await test.started();
    const reply = await fetch(`${url}/v1/feed?cluster=east`);
    expect(reply.headers.get("content-type")).toBe("text/event-stream");
    const events = feedEvents(reply.body!);
    expect(await nextEvent(events, "snapshot")).toEqual({ tag: "1-1" });
    const { engines } = await nextEvent(events, "signals");
    expect(engines.e1?.running).toEqual({ value: 3, state: "fresh", ageMs: 0 });
    expect(await nextEvent(events, "engines")).toEqual({ engines: {} });
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 0 });
    test.clock.advance(5 * SECOND);
    expect(await nextEvent(events, "snapshot")).toEqual({ tag: "1-2" });
    await events.return(undefined);
  });

  it("tells of live gateways as they come", async () => {
    const url = await test.started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 0 });
    await post(`${url}/v1/demand`, demand(5, 1));
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 1 });
    await post(`${url}/v1/demand`, demand(5, 1, { gateway: "g2" }));
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 2 });
    await post(`${url}/v1/demand`, demand(5, 2, { gateway: "g2", leaving: true }));
    expect(await nextEvent(events, "gateways")).toEqual({ gateways: 1 });
    await events.return(undefined);
  });
});

describe("POST /v1/engines/:id/drain and /out", () => {
  it("is stored, told to the gateways at once, and planned with before the next tick is due", async () => {
    const url = await test.started();
    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    expect(await nextEvent(events, "engines")).toEqual({ engines: {} });
    const reply = await post(`${url}/v1/engines/e1/drain`, { on: true });
    expect(await reply.text()).toBe('{"id":"e1","adminState":"draining"}\n');
    expect(await nextEvent(events, "engines")).toEqual({ engines: { e1: "draining" } });
    expect(test.store.operator).toEqual({ engines: { e1: "draining" } });
    const planned = test.solver.next();
    test.clock.advance(SECOND);
    expect((await planned).engines.get("e1")?.adminState).toBe("draining");

    const answers = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
    expect(answers.map(({ id, health }) => [id, health])).toEqual([
      ["e1", "draining"],
      ["e2", "ready"],
    ]);
    await events.return(undefined);
  });

  it("lifts one word without touching the other", async () => {
    const url = await test.started();
    await post(`${url}/v1/engines/e1/out`, { on: true });
    expect(await (await post(`${url}/v1/engines/e1/drain`, { on: false })).json()).toMatchObject({ adminState: "out" });
    expect(await (await post(`${url}/v1/engines/e1/out`, { on: false })).json()).toMatchObject({
      adminState: "active",
    });
    expect(test.store.operator).toEqual({ engines: {} });
  });

  it("holds after a restart", async () => {
    test.store.operator = { engines: { e2: "out" } };
    const planned = test.solver.next();
    await test.start();
    expect((await planned).engines.get("e2")?.adminState).toBe("out");
  });

  it.each([
    ["an engine that is not in the fleet", "e9", '{"on":true}', 404, "unknown_engine"],
    ["a word that is no boolean", "e1", '{"on":"yes"}', 400, "bad_request"],
    ["a body that is not JSON", "e1", "not json", 400, "bad_request"],
    ["a body over 1 MiB", "e1", `"${"x".repeat(1_048_576)}"`, 413, "body_too_large"],
  ])("refuses %s", async (_title, id, body, status, code) => {
    const url = await test.started();
    expect(await errorOf(await post(`${url}/v1/engines/${id}/drain`, body))).toMatchObject({ status, code });
    expect(test.store.operator).toEqual({ engines: {} });
  });
});

describe("POST /v1/demand", () => {
  it("is what the next tick plans with", async () => {
    const url = await test.started();
    for (let seq = 1; seq <= 3; seq++) {
      const reply = await post(`${url}/v1/demand`, demand(40, seq));
      expect(await reply.json()).toEqual({ gateways: 1 });
    }
    const plannedWith = async (gateways: number) => {
      await arrived(url);
      const inputs = test.solver.seen.at(-1)!;
      return inputs.demandRps.get("east\nchat") === 40 && inputs.gateways.get("east") === gateways;
    };
    // At once, since the cluster was silent before; then each 5 s, when the gateway has been silent for three windows.
    await test.roundsUntil(() => plannedWith(1));
    expect(test.clock.nowMs()).toBeLessThan(5 * SECOND);
    await test.roundsUntil(() => plannedWith(0));
    expect(test.solver.seen.at(-1)!.gateways.get("west")).toBe(0);
  });

  it("brings an engine's severity from the gateways' failing factors, never from slowness", async () => {
    const url = await test.started();
    const found = { attempts: 10, faults: 4, failFactor: 0.6, slowFactor: 0.02, dead: false, ttftRatio: 3, rttMs: 1 };
    await post(`${url}/v1/demand`, demand(1, 1, { engines: { e1: found } }));
    const [answer] = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
    expect(answer?.penalty.factor).toBeCloseTo(0.6, 9);
    expect(answer?.penalty.evidence).toEqual({ attempts: 10, faults: 4, gateways: 1, slowFactor: 0.02 });
  });

  it.each([
    ["a field that is missing", (({ seq: _, ...rest }) => rest)(demand(1, 1)), "seq"],
    ["a cluster that is not in the fleet", demand(1, 1, { cluster: "mars" }), "mars"],
  ])("refuses %s and names it", async (_title, report, named) => {
    const url = await test.started();
    const error = await errorOf(await post(`${url}/v1/demand`, report));
    expect(error).toMatchObject({ status: 400, code: "bad_demand" });
    expect(error.message).toContain(named);
  });
});

describe("a report of ten million arrivals", () => {
  it("is refused with the number, counted, logged once, and plans nothing", async () => {
    const url = await test.started();
    await post(`${url}/v1/demand`, demand(40, 1));
    for (const seq of [2, 3]) {
      const error = await errorOf(await post(`${url}/v1/demand`, demand(10_000_000, seq)));
      expect(error).toMatchObject({ status: 400, code: "implausible_demand" });
      expect(error.message).toContain("classes.chat.offered: 10000000 in 1000 ms");
    }
    expect(await (await post(`${url}/v1/demand`, demand(40, 4))).json()).toEqual({ gateways: 1 });
    await test.roundsUntil(async () => {
      await arrived(url);
      return test.solver.seen.at(-1)!.demandRps.get("east\nchat") === 40;
    });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('guidevane_demand_refused_total{cluster="east"} 2');
    expect(test.logger.warnings.filter((line) => line.includes("are not believed"))).toHaveLength(1);
  });
});

describe("GET /v1/engines and /metrics", () => {
  it("B175: shows shares by cluster and class, signals with state and age, and health with its reason", async () => {
    const url = await test.started();
    test.clock.advance(SECOND);
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
    const url = await test.started();
    test.clock.advance(SECOND);
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

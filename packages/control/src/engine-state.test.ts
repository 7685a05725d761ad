import type { EngineSignals, Signal } from "@guidevane/core";
import type { EngineEvidence } from "@guidevane/signals";
import { describe, expect, it } from "vitest";
import type { Observation } from "./collect.ts";
import { adminStateOf, type EngineState, engineStates } from "./engine-state.ts";
import { testFleet } from "./testing/fleet.ts";

const offered: Signal = { value: null, state: "not-offered", ageMs: null };
const signals: EngineSignals = { running: offered, waiting: offered, kvUsage: offered, readyReplicas: offered };
const silent: EngineEvidence = {
  severity: 0,
  attempts: 0,
  faults: 0,
  gateways: 0,
  slowFactor: 1,
  dead: 0,
  successes: 0,
  lateSuccesses: 0,
};

interface Case {
  probed?: "ready" | "unknown" | "dead";
  ready?: Signal;
  evidence?: Partial<EngineEvidence>;
  admin?: "draining" | "out";
}

/** States of the fleet's two engines, both of one model. */
async function statesOf(e1: Case, e2: Case = {}): Promise<[EngineState, EngineState]> {
  const cases: Record<string, Case> = { e1, e2 };
  const states = engineStates(await testFleet(), {
    operator: {
      engines: Object.fromEntries(
        Object.entries(cases).flatMap(([id, { admin }]) => (admin === undefined ? [] : [[id, admin]])),
      ),
    },
    observation: (id): Observation => ({
      probed: { health: cases[id]!.probed ?? "ready", reason: "as probed", sinceMs: 0 },
      signals: { ...signals, readyReplicas: cases[id]!.ready ?? offered },
      rates: { promptTokens: null, generationTokens: null, successes: null },
    }),
    evidence: (id) => ({ ...silent, ...cases[id]!.evidence }),
  });
  return [states.get("e1")!, states.get("e2")!];
}

describe("the state of an engine", () => {
  it("counts on its configured replicas where nobody says how many are ready", async () => {
    const [e1, e2] = await statesOf({});
    expect([e1.readyReplicas, e2.readyReplicas]).toEqual([1, 2]);
    expect(e1.health).toBe("ready");
  });

  it("counts on nothing of one that its probe finds dead", async () => {
    const [e1] = await statesOf({ probed: "dead" });
    expect(e1).toMatchObject({ health: "dead", readyReplicas: 0 });
  });

  it("B149: counts on the ready replicas that are reported, and not on a stale zero", async () => {
    const ready = (value: number, state: "fresh" | "stale"): Signal => ({ value, state, ageMs: 0 });
    expect((await statesOf({}, { ready: ready(1, "fresh") }))[1].readyReplicas).toBe(1);
    expect((await statesOf({}, { ready: ready(1, "stale") }))[1].readyReplicas).toBe(1);
    expect((await statesOf({}, { ready: ready(0, "fresh") }))[1]).toMatchObject({
      readyReplicas: 0,
      health: "not-ready",
    });
    expect((await statesOf({}, { ready: ready(0, "stale") }))[1].readyReplicas).toBe(2);
  });

  it("lives while gateways reach it, though the control plane can't", async () => {
    expect((await statesOf({ probed: "dead", evidence: { successes: 1, lateSuccesses: 1 } }))[0].readyReplicas).toBe(1);
    // Little traffic: nothing in the last window, but something lately.
    expect((await statesOf({ probed: "dead", evidence: { lateSuccesses: 1 } }))[0].readyReplicas).toBe(1);
    // One gateway has found it dead since: answers of before do not count.
    expect((await statesOf({ probed: "dead", evidence: { dead: 1, lateSuccesses: 1 } }))[0].health).toBe("dead");
    // One gateway is cut off like the control plane, another is not.
    expect((await statesOf({ probed: "dead", evidence: { dead: 1, successes: 1 } }))[0].readyReplicas).toBe(1);
  });

  it("is dead by the gateways' word where it has no probe", async () => {
    expect((await statesOf({ probed: "unknown", evidence: { dead: 2 } }))[0]).toMatchObject({
      health: "dead",
      readyReplicas: 0,
    });
    expect((await statesOf({ probed: "unknown" }))[0]).toMatchObject({ health: "unknown", readyReplicas: 1 });
  });

  it("is taken as alive when the control plane reaches no engine of its model and no gateway confirms it", async () => {
    const states = await statesOf({ probed: "dead" }, { probed: "dead" });
    expect(states.map((each) => each.readyReplicas)).toEqual([1, 2]);
    expect(states[0]).toMatchObject({ health: "unknown", healthReason: expect.stringContaining("taken as alive") });
  });

  it("is dead with all others as soon as a gateway confirms one", async () => {
    const states = await statesOf({ probed: "dead", evidence: { dead: 1 } }, { probed: "dead" });
    expect(states.map((each) => each.readyReplicas)).toEqual([0, 0]);
  });

  it("may be called like a part of every object", async () => {
    const fleet = await testFleet();
    const odd = { ...fleet.engines.get("e1")!, id: "constructor" };
    expect(adminStateOf(odd, { engines: {} })).toBe("active");
    expect(adminStateOf(odd, { engines: { constructor: "out" } as never })).toBe("out");
  });

  it("shows the operator's word, but death before draining", async () => {
    const states = await statesOf({ admin: "draining" }, { admin: "out" });
    expect(states.map((each) => [each.health, each.adminState])).toEqual([
      ["draining", "draining"],
      ["out", "out"],
    ]);
    expect((await statesOf({ admin: "draining", probed: "dead" }))[0].health).toBe("dead");
  });
});

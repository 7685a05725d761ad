import type { EngineSignals, SnapshotEngine } from "@guidevane/core";
import { RAMP_MS } from "@guidevane/guard";
import { describe, expect, it } from "vitest";
import { EngineStates } from "./engine-states.ts";

const SPEC = {
  ...{ url: "http://e", kind: "vllm", replicas: 1, plannedReady: 2, adminState: "active" },
  health: { path: "/health", pathIsDefault: true, port: null, intervalMs: 2000 },
} as unknown as SnapshotEngine;

const none = { value: null, state: "not-offered", ageMs: null } as const;

function signals(readyReplicas: number): EngineSignals {
  return {
    ...{ running: none, waiting: none, kvUsage: none },
    readyReplicas: { value: readyReplicas, state: "fresh", ageMs: 0 },
  };
}

function start(engines: number) {
  let nowMs = 0;
  const told: string[] = [];
  const states = new EngineStates({
    clock: { nowMs: () => nowMs, wallMs: () => nowMs, after: () => () => {} },
    onFacts: (engine, { factor }) => told.push(`${engine} ${factor.toFixed(2)}`),
    penaltyOf: () => 1,
    retryAfterCapMs: () => 30_000,
    onHealth: () => {},
    onDied: () => {},
  });
  for (let at = 0; at < engines; at++) states.adopt(`e${at}`, SPEC);
  return {
    states,
    /** What a refresh after so long tells. */
    refreshAfter(ms: number): string[] {
      nowMs += ms;
      told.length = 0;
      states.refresh();
      return [...told];
    },
  };
}

describe("what time alone changes of engines", () => {
  it("is told of those that it changes, not of all", () => {
    const { states, refreshAfter } = start(1000);
    expect(refreshAfter(250)).toEqual([]);
    states.get("e7")!.health.refused();
    states.reread("e7");
    for (let good = 0; good < 2; good++) states.get("e7")!.health.probed({ kind: "answer", status: 200 });
    states.reread("e7");
    expect(refreshAfter(RAMP_MS / 2)).toEqual(["e7 0.55"]);
    expect(refreshAfter(RAMP_MS / 2)).toEqual(["e7 1.00"]);
    expect(refreshAfter(250)).toEqual([]);
  });

  it("is that a count of replicas grows too old", () => {
    const { states, refreshAfter } = start(3);
    states.setSignals({ e1: signals(1) });
    expect(refreshAfter(15_000)).toEqual([]);
    expect(refreshAfter(1)).toEqual(["e1 1.00"]);
    expect(refreshAfter(15_000)).toEqual([]);
  });
});

describe("engines that take nothing", () => {
  it("are known by name", () => {
    const { states } = start(4);
    states.setAdmin({ e1: "out", e2: "draining" });
    states.get("e3")!.health.refused();
    states.reread("e3");
    expect([...states.out].sort()).toEqual(["e1", "e2", "e3"]);
    states.setAdmin({});
    expect([...states.out]).toEqual(["e3"]);
    states.sweep([]);
    expect([...states.out]).toEqual([]);
  });
});

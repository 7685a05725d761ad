import { ManualClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type EngineBasis, EngineHealth, RAMP_MS } from "./health.ts";

const BASIS: EngineBasis = {
  replicas: 1,
  plannedReady: 1,
  adminState: "active",
  probePath: "/health",
  probePathIsDefault: true,
  probeIntervalMs: 2000,
};

function start(basis: Partial<EngineBasis> = {}) {
  const clock = new ManualClock();
  const health = new EngineHealth({ ...BASIS, ...basis }, clock);
  const shown = () => {
    const { out, outByProbe, draining, health: word } = health.facts();
    return { out, outByProbe, draining, word };
  };
  return { clock, health, shown };
}

const answer = (status: number) => ({ kind: "answer", status }) as const;
const TAKES = { out: false, outByProbe: false, draining: false };

describe("an engine's health", () => {
  it("is unknown at first, and an engine of unknown health takes traffic", () => {
    expect(start().shown()).toEqual({ ...TAKES, word: "unknown" });
  });

  it("is ready after a good probe or an answer", () => {
    const [probed, answered] = [start(), start()];
    probed.health.probed(answer(204));
    answered.health.answered();
    expect([probed.shown().word, answered.shown().word]).toEqual(["ready", "ready"]);
  });

  it("is dead at the first refusal where there is one replica, at the second where there are more", () => {
    const one = start();
    one.health.refused();
    expect(one.shown()).toEqual({ ...TAKES, out: true, word: "dead" });
    const three = start({ replicas: 3 });
    three.health.refused();
    expect(three.shown().word).toBe("unknown");
    three.health.refused();
    expect(three.shown()).toEqual({ ...TAKES, out: true, word: "dead" });
  });

  it("forgets a single refusal of one of several replicas when another answers", () => {
    const { health, shown } = start({ replicas: 3 });
    health.refused();
    health.answered();
    health.refused();
    expect(shown().word).toBe("ready");
  });

  it("is dead by probes after two bad ones in a row, and out only for them", () => {
    const { health, shown } = start();
    health.probed(answer(503));
    health.probed(answer(200));
    health.probed({ kind: "failed", why: "timed out" });
    expect(shown()).toEqual({ ...TAKES, word: "ready" });
    health.probed(answer(500));
    expect(shown()).toEqual({ ...TAKES, outByProbe: true, word: "dead" });
    expect(health.facts().reason).toBe("http 500");
  });

  it("B081: outlasts late probes while its answers make progress, and two in a row even when they don't", () => {
    const { clock, health, shown } = start();
    const late = { kind: "late", why: "no answer after 2000 ms" } as const;
    health.answered();
    for (let i = 0; i < 20; i++) {
      clock.advance(2000);
      health.heard();
      health.probed(late);
    }
    expect(shown()).toEqual({ ...TAKES, word: "ready" });
    clock.advance(3000);
    for (let i = 0; i < 2; i++) health.probed(late);
    expect(shown().word).toBe("ready");
    health.probed(late);
    expect(shown()).toEqual({ ...TAKES, outByProbe: true, word: "dead" });
  });

  it.each([401, 404, 405])("does not take %i on a default path for an illness, and stops asking", (status) => {
    const { health, shown } = start();
    health.probed(answer(status));
    health.probed(answer(status));
    expect(shown()).toEqual({ ...TAKES, word: "ready" });
    expect(health.probe).toBeNull();
  });

  it.each([401, 404, 405])("takes %i on a configured path for what it is", (status) => {
    const { health, shown } = start({ probePathIsDefault: false });
    health.probed(answer(status));
    health.probed(answer(status));
    expect(shown().word).toBe("dead");
  });

  it("comes back after two good probes, and its factor rises to 1 in ten seconds", () => {
    const { clock, health, shown } = start();
    health.refused();
    health.probed(answer(200));
    expect(shown()).toEqual({ ...TAKES, out: true, word: "dead" });
    expect(health.nextProbeMs(0.5)).toBeLessThan(1000);
    health.probed(answer(200));
    expect(shown()).toEqual({ ...TAKES, word: "ready" });
    const factors = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const { factor } = health.facts();
      if (part < 1) clock.advance(RAMP_MS / 4);
      return factor;
    });
    expect(factors).toEqual([...factors].sort((a, b) => a - b));
    expect(factors[0]).toBeGreaterThan(0);
    expect(factors[0]).toBeLessThan(0.2);
    expect(factors.at(-1)).toBe(1);
    expect(health.ramping).toBe(false);
  });

  it("is not brought back by an answer over a connection older than the refusal", () => {
    const { health, shown } = start();
    health.refused();
    health.answered();
    health.answered();
    expect(shown().word).toBe("dead");
  });

  it("is not brought back by one good probe among bad ones", () => {
    const { health, shown } = start();
    health.refused();
    for (let i = 0; i < 5; i++) {
      health.probed(answer(200));
      health.probed({ kind: "refused" });
    }
    expect(shown().word).toBe("dead");
  });

  it("knocks at the port of a dead engine that has no health path, and asks nothing of a living one", () => {
    const { health, shown } = start({ probePath: null });
    health.answered();
    expect(health.probe).toBeNull();
    health.refused();
    expect(health.probe).toEqual({ path: null });
    health.probed({ kind: "connected" });
    health.probed({ kind: "connected" });
    expect(shown().word).toBe("ready");
  });

  it("gives the part of the planned replicas that are ready, at once", () => {
    const { health, shown } = start({ replicas: 4, plannedReady: 4 });
    health.answered();
    health.setReadyReplicas(3);
    expect(health.facts().factor).toBe(0.75);
    health.setReadyReplicas(5);
    expect(health.facts().factor).toBe(1);
    health.rebase({ ...BASIS, replicas: 4, plannedReady: 2 });
    health.setReadyReplicas(1);
    expect(health.facts().factor).toBe(0.5);
    health.setReadyReplicas(0);
    expect(shown()).toEqual({ ...TAKES, out: true, word: "not-ready" });
  });

  it.each([1, null])("B083: gives an engine without a ready replica its share back by a ramp (%s)", (count) => {
    const { health, shown, clock } = start();
    health.answered();
    health.setReadyReplicas(0);
    expect(shown().out).toBe(true);
    health.setReadyReplicas(count);
    expect(shown()).toEqual({ ...TAKES, word: "ready" });
    expect(health.facts().factor).toBeCloseTo(0.1, 9);
    clock.advance(RAMP_MS / 2);
    expect(health.facts().factor).toBeCloseTo(0.55, 9);
    clock.advance(RAMP_MS / 2);
    expect(health.facts().factor).toBe(1);
  });

  it("follows the operator over everything else, and the snapshot where the operator says nothing", () => {
    const { health, shown } = start({ adminState: "draining" });
    expect(shown()).toEqual({ ...TAKES, draining: true, word: "draining" });
    health.setAdmin("out");
    expect(shown()).toEqual({ ...TAKES, out: true, word: "out" });
    expect(health.probe).toBeNull();
    health.setAdmin("active");
    expect(shown()).toEqual({ ...TAKES, word: "unknown" });
    health.setAdmin(null);
    expect(shown().word).toBe("draining");
  });

  it("is fresh for one probe interval after an answer, and asks a little unevenly otherwise", () => {
    const { clock, health } = start();
    expect(health.freshlySeen).toBe(false);
    health.answered();
    clock.advance(1999);
    expect(health.freshlySeen).toBe(true);
    clock.advance(1);
    expect(health.freshlySeen).toBe(false);
    expect([health.nextProbeMs(0), health.nextProbeMs(1)]).toEqual([1800, 2200]);
    health.refused();
    expect([health.nextProbeMs(0), health.nextProbeMs(1)]).toEqual([900, 1100]);
  });

  it("says since when it is as it is", () => {
    const { clock, health } = start();
    clock.advance(100);
    health.refused();
    clock.advance(100);
    health.refused();
    expect(health.facts().sinceMs).toBe(100);
  });
});

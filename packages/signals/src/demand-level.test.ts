import { DEMAND_FLOOR_RPS, type DemandReport } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { DemandLevels } from "./demand-level.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Reports each second from `fromMs` on, `seconds` long, of one gateway. */
function run(levels: DemandLevels, fromMs: number, seconds: number, gateway: string, offered: number, seq = 0): void {
  for (let i = 1; i <= seconds; i++) levels.add(report({ gateway, offered, seq: seq + i }), fromMs + i * SECOND);
}

function report({
  gateway = "g1",
  cluster = "east",
  seq = 1,
  offered = 0,
  work = offered,
  engines = {},
}: {
  gateway?: string;
  cluster?: string;
  seq?: number;
  offered?: number;
  work?: number;
  engines?: Record<string, Partial<DemandReport["engines"][string]>>;
}): DemandReport {
  return {
    gateway,
    cluster,
    seq,
    windowMs: SECOND,
    classes: { chat: { offered, work, retries: 0, clientRetries: 0, shed: 0 } },
    engines: Object.fromEntries(
      Object.entries(engines).map(([id, each]) => [
        id,
        { attempts: 0, faults: 0, failFactor: 1, slowFactor: 1, dead: false, ttftRatio: null, rttMs: null, ...each },
      ]),
    ),
  };
}

describe("demand from reports", () => {
  it("is not known of a cluster that never reported", () => {
    const levels = new DemandLevels();
    run(levels, 0, 3, "g1", 5);
    expect(levels.of("west", 3 * SECOND)).toBeNull();
  });

  it("adds the gateways of a cluster", () => {
    const levels = new DemandLevels();
    run(levels, 0, 20, "g1", 10);
    run(levels, 0, 20, "g2", 30);
    expect(levels.of("east", 20 * SECOND)?.get("chat")).toMatchObject({ offeredRps: 40, work: 1, ageMs: 0 });
    expect(levels.live("east", 20 * SECOND)).toBe(2);
  });

  it("takes thousands of gateways in one after another, as many restarts leave behind", () => {
    const levels = new DemandLevels();
    for (let i = 0; i < 3000; i++) levels.add(report({ gateway: `g${i}`, seq: 1 }), i);
    expect(levels.live("east", 3000)).toBe(3000);
    levels.add(report({ gateway: "last", seq: 1 }), 3_600_000);
    expect(levels.live("east", 3_600_000)).toBe(1);
  });

  it("drops a gateway unheard for three windows while another reports, and takes it back", () => {
    const levels = new DemandLevels();
    run(levels, 0, 20, "g1", 10);
    run(levels, 0, 20, "g2", 30);
    run(levels, 20 * SECOND, 3, "g2", 30, 20);
    expect(levels.of("east", 23 * SECOND)?.get("chat")?.offeredRps).toBe(40);
    run(levels, 23 * SECOND, 1, "g2", 30, 23);
    expect(levels.of("east", 24 * SECOND)?.get("chat")?.offeredRps).toBe(30);
    expect(levels.live("east", 24 * SECOND)).toBe(1);
    levels.add(report({ gateway: "g1", offered: 10, seq: 21 }), 24 * SECOND);
    expect(levels.of("east", 24 * SECOND)?.get("chat")?.offeredRps).toBe(40);
  });

  it("counts what a leaving gateway still serves, and the gateway not as one of the living", () => {
    const levels = new DemandLevels();
    run(levels, 0, 20, "g1", 10);
    run(levels, 0, 20, "g2", 30);
    levels.add({ ...report({ gateway: "g1", offered: 1, seq: 21 }), windowMs: 100, leaving: true }, 20_100);
    expect(levels.live("east", 20_100)).toBe(1);
    run(levels, 20 * SECOND, 1, "g2", 30, 20);
    expect(levels.of("east", 21 * SECOND)?.get("chat")?.offeredRps).toBeCloseTo(40, 5);
    // It is gone: three windows, as of one that says nothing.
    run(levels, 21 * SECOND, 3, "g2", 30, 21);
    expect(levels.of("east", 24 * SECOND)?.get("chat")?.offeredRps).toBe(30);
  });

  it("keeps the last demand of a silent cluster for ten minutes, then asks for the floor", () => {
    const levels = new DemandLevels();
    run(levels, 0, 20, "g1", 10);
    run(levels, 0, 20, "g2", 30);
    const silentMs = 20 * SECOND;
    expect(levels.of("east", silentMs + 10 * MINUTE)?.get("chat")).toMatchObject({
      offeredRps: 40,
      ageMs: 10 * MINUTE,
    });
    expect(levels.live("east", silentMs + 10 * MINUTE)).toBe(0);
    expect(levels.of("east", silentMs + 10 * MINUTE + 1)?.get("chat")?.offeredRps).toBe(DEMAND_FLOOR_RPS);
  });

  it("waits for the first arrival before it believes that a new cluster has none", () => {
    const levels = new DemandLevels();
    run(levels, 0, 29, "g1", 0);
    expect(levels.of("east", 29 * SECOND)).toBeNull();
    run(levels, 29 * SECOND, 3, "g1", 0, 29);
    expect(levels.of("east", 32 * SECOND)?.get("chat")?.offeredRps).toBe(DEMAND_FLOOR_RPS);
  });

  it("counts a report once, though it come twice or late, and begins again with a restarted gateway", () => {
    const levels = new DemandLevels();
    run(levels, 0, 20, "g1", 10);
    expect(levels.add(report({ offered: 9999, seq: 20 }), 20 * SECOND).counted).toBe(false);
    expect(levels.add(report({ offered: 9999, seq: 18 }), 20 * SECOND).counted).toBe(false);
    expect(levels.of("east", 20 * SECOND)?.get("chat")?.offeredRps).toBe(10);
    expect(levels.add(report({ offered: 10, seq: 1 }), 21 * SECOND).counted).toBe(true);
  });

  it("measures the work of a request", () => {
    const levels = new DemandLevels();
    for (let seq = 1; seq <= 5; seq++) levels.add(report({ offered: 4, work: 10, seq }), seq * SECOND);
    expect(levels.of("east", 5 * SECOND)?.get("chat")?.work).toBeCloseTo(2.5, 9);
  });
});

describe("what gateways found of an engine", () => {
  it("weighs each gateway's failing factor by its attempts", () => {
    const levels = new DemandLevels();
    levels.add(report({ gateway: "g1", engines: { e1: { attempts: 30, faults: 15, failFactor: 0.5 } } }), 0);
    levels.add(report({ gateway: "g2", engines: { e1: { attempts: 10, failFactor: 1 } } }), 0);
    levels.add(report({ gateway: "g3", engines: { e1: { attempts: 0, failFactor: 1 } } }), 0);
    const found = levels.evidence("e1", 0);
    expect(found.severity).toBeCloseTo((30 * 0.5 + 10 * 0) / 40, 5);
    expect(found).toMatchObject({ attempts: 40, faults: 15, gateways: 2, dead: 0, successes: 2 });
  });

  it("is nothing of an engine that nobody named, and of gateways that went silent", () => {
    const levels = new DemandLevels();
    levels.add(report({ engines: { e1: { attempts: 5, faults: 5, failFactor: 0.02, dead: true } } }), 0);
    expect(levels.evidence("e2", 0)).toMatchObject({ severity: 0, dead: 0 });
    expect(levels.evidence("e1", 3 * SECOND)).toMatchObject({ dead: 1, successes: 0 });
    expect(levels.evidence("e1", 3 * SECOND + 1)).toMatchObject({ severity: 0, dead: 0 });
  });

  it("says when a gateway's word on who is dead has changed, and only then", () => {
    const levels = new DemandLevels();
    const add = (seq: number, engines: Record<string, { dead: boolean }>) =>
      levels.add(report({ seq, engines }), seq * SECOND).deathsChanged;
    expect(add(1, { e1: { dead: false } })).toBe(false);
    expect(add(2, { e1: { dead: true } })).toBe(true);
    expect(add(3, { e1: { dead: true } })).toBe(false);
    expect(add(4, { e1: { dead: true }, e2: { dead: true } })).toBe(true);
    expect(add(5, { e1: { dead: false }, e2: { dead: true } })).toBe(true);
    expect(add(6, { e1: { dead: false } })).toBe(true);
  });

  it("remembers an answer for 5 s, and not of a gateway that has since called the engine dead", () => {
    const levels = new DemandLevels();
    const found = (seq: number, engine: Partial<DemandReport["engines"][string]>) =>
      levels.add(report({ seq, engines: { e1: engine } }), seq * SECOND);
    found(1, { attempts: 1 });
    found(2, {});
    found(3, {});
    found(4, {});
    expect(levels.evidence("e1", 6 * SECOND)).toMatchObject({ successes: 0, lateSuccesses: 1 });
    expect(levels.evidence("e1", 6 * SECOND + 1)).toMatchObject({ lateSuccesses: 0 });
    found(5, { dead: true });
    expect(levels.evidence("e1", 5 * SECOND)).toMatchObject({ dead: 1, lateSuccesses: 0 });
  });

  it("remembers the attempts behind a factor after the penalty has stopped them", () => {
    const levels = new DemandLevels();
    levels.add(report({ gateway: "g1", seq: 1, engines: { e1: { attempts: 30, faults: 30, failFactor: 0.1 } } }), 0);
    levels.add(report({ gateway: "g1", seq: 2, engines: { e1: { attempts: 0, failFactor: 0.1 } } }), SECOND);
    levels.add(report({ gateway: "g2", seq: 1, engines: { e1: { attempts: 0, failFactor: 1 } } }), SECOND);
    expect(levels.evidence("e1", SECOND).severity).toBeCloseTo(0.9, 3);
  });
});

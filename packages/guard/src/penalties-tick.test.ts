import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { BaseRate } from "./base-rate.ts";
import { EnginePenalty } from "./engine-penalty.ts";
import { PENALTY_TICK_MS, Penalties } from "./penalties.ts";
import { evenFleet, nameOf } from "./penalty-harness.fixture.ts";
import { PENALTY_FLOOR } from "./penalty-ramp.ts";

/** Penalties of an even fleet, and an answer of one of its engines. */
function start(engines: number) {
  const penalties = new Penalties(0);
  let attempts = 0;
  return {
    penalties,
    fleet: evenFleet(engines),
    answer(engine: number, outcome: "success" | "fault", nowMs: number): void {
      const attempt = attempts++;
      penalties.began(attempt, { engine: nameOf(engine), requestClass: "chat", ttftMs: null, tbotMs: null }, nowMs);
      penalties.ended(attempt, outcome, null);
    },
  };
}

describe("a tick", () => {
  it("looks at the engines of which something was heard, not at all that there are", () => {
    const { penalties, fleet, answer } = start(1000);
    for (let engine = 0; engine < 1000; engine++) answer(engine, "success", engine);
    expect(penalties.awake).toBe(1000);
    penalties.tick(fleet, 1000);
    expect(penalties.awake).toBe(0);
    answer(7, "fault", 1100);
    answer(8, "success", 1200);
    penalties.tick(fleet, 1250);
    // What spoke against it is looked at until nothing does.
    expect(penalties.awake).toBe(1);
    for (let at = 0; at < 40; at++) answer(7, "success", 1300 + at);
    penalties.tick(fleet, 1500);
    expect(penalties.awake).toBe(0);
  });

  it("forgets those that are out, which a fleet may name", () => {
    const { penalties, fleet, answer } = start(3);
    for (let at = 0; at < 6; at++) answer(0, "fault", at);
    const engines = new Map(fleet.engines).set("e0", { ...fleet.engines.get("e0")!, takes: false });
    penalties.tick({ ...fleet, engines, out: () => [] }, 250);
    expect(penalties.verdict("e0").failFactor).toBe(PENALTY_FLOOR);
    penalties.tick({ ...fleet, engines, out: () => ["e0", "e1"] }, 500);
    expect(penalties.verdict("e0").evidence).toBeNull();
    expect(penalties.awake).toBe(0);
  });

  it("finds in an engine that slept what looking at it at each tick finds", () => {
    let [slept, suspected] = [0, 0];
    for (let seed = 1; seed <= 8; seed++) {
      const random = seededRandom(seed);
      const { penalties, fleet, answer } = start(4);
      const watched = watchEngine();
      let faultRate = 0;
      for (let nowMs = PENALTY_TICK_MS; nowMs < 600_000; nowMs += PENALTY_TICK_MS) {
        // Half a minute of answers, of silence or of faults.
        if (nowMs % 30_000 === 0) faultRate = random() < 0.5 ? 0 : 0.4;
        const answers = Math.floor(nowMs / 30_000) % 2 === 0 && random() < 0.7 ? 1 + Math.floor(3 * random()) : 0;
        for (let at = 0; at < answers; at++) {
          const outcome = random() < faultRate ? "fault" : "success";
          answer(0, outcome, nowMs - 1);
          watched.answer(outcome, nowMs - 1);
        }
        penalties.tick(fleet, nowMs);
        watched.tick(nowMs);
        const { evidence } = penalties.verdict("e0");
        expect(evidence).toEqual(watched.evidence(nowMs));
        if (penalties.awake === 0) slept++;
        if (evidence !== null) suspected++;
      }
    }
    expect(slept).toBeGreaterThan(1000);
    expect(suspected).toBeGreaterThan(1000);
  });

  it("forgets an engine that left while it slept", () => {
    const { penalties, fleet } = start(8);
    const ticks = 20;
    for (let at = 0; at < 8 * ticks; at++) {
      const nowMs = Math.floor(at / 8) * PENALTY_TICK_MS;
      if (at % 8 === 0) penalties.tick(fleet, nowMs);
      penalties.began(at, { engine: nameOf(at % 8), requestClass: "chat", ttftMs: 200, tbotMs: 15 }, nowMs);
      penalties.firstToken(at, 220);
      penalties.ended(at, "success", 15);
    }
    penalties.tick(fleet, ticks * PENALTY_TICK_MS);
    expect(penalties.awake).toBe(0);
    expect(penalties.ttftRatio("e0")).toBeGreaterThan(1);
    penalties.tick({ ...fleet, engines: new Map([...fleet.engines].slice(1)) }, 60_000);
    expect(penalties.ttftRatio("e0")).toBeNull();
    expect(penalties.ttftRatio("e1")).toBeGreaterThan(1);
  });
});

/** The tests of one engine of a fleet where all others are silent, looked at at each tick whatever was heard. */
function watchEngine() {
  const baseRate = new BaseRate(0);
  let engine: EnginePenalty | null = null;
  let answers: { readonly fault: boolean; readonly beganMs: number }[] = [];
  return {
    answer(outcome: "success" | "fault", nowMs: number): void {
      engine ??= new EnginePenalty(nameOf(0), baseRate.design(1), nowMs);
      engine.began(nowMs);
      answers.push({ fault: outcome === "fault", beganMs: nowMs });
    },
    tick(nowMs: number): void {
      let [faults, healthy] = [0, 0];
      for (const { fault, beganMs } of answers) {
        if (engine?.healthy) {
          healthy += 1;
          if (fault) faults += 1;
        }
        engine?.answered(fault, beganMs, nowMs);
      }
      answers = [];
      baseRate.add(faults, healthy, nowMs);
      engine?.tick((answersPerS) => baseRate.design(answersPerS), nowMs);
    },
    evidence: (nowMs: number) => engine?.evidence(new Set(), nowMs) ?? null,
  };
}

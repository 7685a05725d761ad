import { ManualClock, type Profile, seededRandom, valueAt } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { EngineModel, type EngineModelOptions } from "./engine-model.ts";

/** TTFT + 16·TBOT is 200/220/300/500/900 ms at 0/70/85/95/100 % of the load. */
const profile: Profile = {
  profile: "test",
  sku: null,
  model: null,
  precision: null,
  reference: { promptTokens: 64, outputTokens: 16 },
  work: { prefillPerKtok: 3.125, decodePerKtok: 50 },
  prefillMsPerTok: 0.1,
  loop: "open",
  capacityWps: 100,
  ttftMs: [
    [0, 40],
    [0.7, 44],
    [0.85, 60],
    [0.95, 100],
    [1, 180],
  ],
  tbotMs: [
    [0, 10],
    [0.7, 11],
    [0.85, 15],
    [0.95, 25],
    [1, 45],
  ],
};
const reference = profile.reference;

function engineOn(clock: ManualClock, options: Partial<EngineModelOptions> = {}): EngineModel {
  return new EngineModel({ profile, clock, ...options });
}

/** Offers reference requests at `rateRps` for `ms`, and gives each one's answer. */
function offer(engine: EngineModel, clock: ManualClock, random: () => number, rateRps: number, ms: number) {
  const endMs = clock.nowMs() + ms;
  const admissions = [];
  for (;;) {
    const gapMs = (-Math.log(1 - random()) * 1000) / rateRps;
    if (clock.nowMs() + gapMs > endMs) break;
    clock.advance(gapMs);
    admissions.push(engine.admit(reference));
  }
  clock.advance(endMs - clock.nowMs());
  return admissions;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe("an engine's latency", () => {
  it.each([0.3, 0.6, 0.8, 0.9, 0.96])(
    "follows its profile within 3 % under Poisson arrivals at %f of the load",
    (rho) => {
      const clock = new ManualClock();
      const engine = engineOn(clock);
      const random = seededRandom(11);
      offer(engine, clock, random, rho * 100, 60_000);
      const admissions = offer(engine, clock, random, rho * 100, 1_500_000);
      const expected = valueAt(profile.ttftMs, rho) + reference.outputTokens * valueAt(profile.tbotMs, rho);
      expect(Math.abs(mean(admissions.map((each) => each.totalMs)) / expected - 1)).toBeLessThan(0.03);
      expect(Math.abs(mean(admissions.map((each) => each.ttftMs)) / valueAt(profile.ttftMs, rho) - 1)).toBeLessThan(
        0.04,
      );
      // A profile already has the queueing of chance; nothing waits twice.
      expect(mean(admissions.map((each) => each.queueMs))).toBeLessThan(2);
    },
  );

  it("adds the prefill of the prompt tokens beyond the reference", () => {
    const engine = engineOn(new ManualClock());
    const { ttftMs, tbotMs, totalMs } = engine.admit({ promptTokens: 1064, outputTokens: 4 });
    expect([ttftMs, tbotMs, totalMs]).toEqual([140, 10, 180]);
  });

  it("is never before now for a prompt far below the reference", () => {
    const short: Profile = { ...profile, reference: { promptTokens: 1000, outputTokens: 16 } };
    expect(
      new EngineModel({ profile: short, clock: new ManualClock() }).admit({ promptTokens: 1, outputTokens: 1 }).ttftMs,
    ).toBe(0);
  });

  it("is the same for twice the replicas under twice the load", () => {
    const [one, two] = [1, 2].map((replicas) => {
      const clock = new ManualClock();
      const engine = engineOn(clock, { replicas });
      return mean(offer(engine, clock, seededRandom(3), 85 * replicas, 400_000).map((each) => each.totalMs));
    });
    expect(Math.abs(one! / two! - 1)).toBeLessThan(0.03);
  });

  it("spreads by the jitter asked for without moving the mean", () => {
    const clock = new ManualClock();
    const engine = engineOn(clock, { random: seededRandom(5), jitter: 0.2 });
    const values = Array.from({ length: 20_000 }, () => {
      clock.advance(1000);
      return engine.admit(reference).totalMs;
    });
    const average = mean(values);
    const deviation = Math.sqrt(mean(values.map((value) => (value - average) ** 2)));
    expect(average / 200).toBeCloseTo(1, 2);
    expect(deviation / average).toBeCloseTo(0.2, 1.5);
  });
});

describe("an engine that is offered more than it can do", () => {
  it("queues the excess, second for second, and drains it when the load falls", () => {
    const clock = new ManualClock();
    const engine = engineOn(clock);
    const random = seededRandom(9);
    offer(engine, clock, random, 130, 15_000);
    const first = engine.backlog;
    offer(engine, clock, random, 130, 30_000);
    const second = engine.backlog;
    // 30 units/s more than it does; 30 s of 130/s are good to 62 units.
    expect(Math.abs(second - first - 900)).toBeLessThan(190);
    expect(engine.admit(reference).queueMs).toBeCloseTo(second * 10, 6);

    offer(engine, clock, random, 50, 5000);
    expect(Math.abs(second - engine.backlog - 250)).toBeLessThan(50);
    offer(engine, clock, random, 50, 60_000);
    expect(engine.backlog).toBe(0);
    expect(mean(offer(engine, clock, random, 50, 20_000).map((each) => each.queueMs))).toBe(0);
  });

  it("takes a request that has waited no longer than full load does", () => {
    const clock = new ManualClock();
    const engine = engineOn(clock);
    offer(engine, clock, seededRandom(8), 200, 20_000);
    const { utilisation, queueMs, totalMs } = engine.admit(reference);
    expect(utilisation).toBeGreaterThan(1.5);
    expect(totalMs - queueMs).toBeCloseTo(900, 9);
  });

  it("gives a cancelled request's work back at once", () => {
    const clock = new ManualClock();
    const engine = engineOn(clock);
    const admissions = offer(engine, clock, seededRandom(4), 150, 20_000);
    const before = engine.backlog;
    for (const admission of admissions.slice(-100)) engine.release(admission, 0.5);
    expect(engine.backlog).toBeCloseTo(before - 50, 9);
  });
});

describe("what can be done to an engine", () => {
  it("takes a slowdown as longer steps and less capacity", () => {
    const engine = engineOn(new ManualClock());
    engine.slowdown = 4;
    expect(engine.capacityWps).toBe(25);
    expect(engine.admit(reference).totalMs).toBe(800);
  });

  it("has the capacity of its ready replicas", () => {
    const engine = engineOn(new ManualClock(), { replicas: 3, capacityWps: 7 });
    expect(engine.capacityWps).toBe(21);
    engine.readyReplicas = 2;
    expect(engine.capacityWps).toBe(14);
  });
});

import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { WorkRate } from "./work-rate.ts";

/** Poisson arrivals of one unit each, from `fromMs` for `ms`; returns when it ends. */
function feed(rate: WorkRate, random: () => number, perSecond: number, fromMs: number, ms: number): number {
  let nowMs = fromMs;
  for (;;) {
    nowMs += (-Math.log(1 - random()) * 1000) / perSecond;
    if (nowMs > fromMs + ms) return fromMs + ms;
    rate.add(nowMs, 1);
  }
}

describe("the rate of work", () => {
  it("is 0 before anything arrives", () => {
    expect(new WorkRate(2000).at(5000)).toEqual({ rateWps: 0, deviationWps: 0 });
  });

  it("counts a young window as the shortest, so that one request is no endless rate", () => {
    const rate = new WorkRate(2000);
    rate.add(1000, 3);
    expect(rate.at(1000.5).rateWps).toBe(1.5);
  });

  it("does not count the time before the first arrival, however few come", () => {
    const rate = new WorkRate(2000);
    for (let ms = 60_000; ms < 64_000; ms += 1000) rate.add(ms, 1);
    // Four in four seconds; counted from 0 it would be four in 64.
    expect(rate.at(64_000).rateWps).toBeCloseTo(1, 9);
  });

  it("knows a steady rate to the error of 64 s of arrivals", () => {
    const errors = Array.from({ length: 30 }, (_, seed) => {
      const rate = new WorkRate(2000);
      const endMs = feed(rate, seededRandom(seed + 1), 100, 0, 120_000);
      return rate.at(endMs).rateWps / 100 - 1;
    });
    const spread = Math.sqrt(errors.reduce((sum, error) => sum + error * error, 0) / errors.length);
    // 6,400 arrivals: 1.25 %; a two-second window alone would give 7 %.
    expect(spread).toBeGreaterThan(0.004);
    expect(spread).toBeLessThan(0.025);
  });

  it.each([
    [50, 90],
    [90, 50],
    [90, 0],
  ])("follows a step from %i/s to %i/s within 8 s", (before, after) => {
    for (let seed = 1; seed <= 10; seed++) {
      const rate = new WorkRate(2000);
      const random = seededRandom(seed);
      let nowMs = feed(rate, random, before, 0, 120_000);
      nowMs = after === 0 ? nowMs + 8000 : feed(rate, random, after, nowMs, 8000);
      // What 8 s can tell is within three deviations of the truth; before + after halves would be 20 off.
      expect(Math.abs(rate.at(nowMs).rateWps - after)).toBeLessThan(3 * Math.sqrt(Math.max(after, 1) / 8) + 4);
    }
  });

  it("has gone nine tenths of the way 8 s after a step of 40 %", () => {
    const estimates = Array.from({ length: 40 }, (_, seed) => {
      const rate = new WorkRate(2000);
      const random = seededRandom(seed + 1);
      const stepMs = feed(rate, random, 50, 0, 120_000);
      return rate.at(feed(rate, random, 70, stepMs, 8000)).rateWps;
    });
    const mean = estimates.reduce((sum, estimate) => sum + estimate, 0) / estimates.length;
    expect(mean).toBeGreaterThan(68);
    expect(mean).toBeLessThan(72);
  });

  it("takes back the work of a cancelled request", () => {
    const rate = new WorkRate(2000);
    rate.add(0, 4);
    rate.add(100, -3);
    expect(rate.at(200).rateWps).toBe(0.5);
  });
});

import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { BaseRate } from "./base-rate.ts";

/** What is learned from so many minutes of 20 answers/s at a fault rate. */
function learned(rate: number, minutes: number): BaseRate {
  const base = new BaseRate(0);
  const random = seededRandom(11);
  for (let s = 1; s <= minutes * 60; s++) {
    let faults = 0;
    for (let i = 0; i < 20; i++) if (random() < rate) faults += 1;
    base.add(faults, 20, s * 1000);
  }
  return base;
}

describe("the base rate", () => {
  it("is 0.3 % until something else is sure", () => {
    expect(new BaseRate(0).rate).toBe(0.003);
    expect(learned(0, 1).rate).toBe(0.003);
    expect(learned(0.003, 30).rate).toBe(0.003);
  });

  it("is lower where no engine fails, so that three faults are enough", () => {
    const { up, limit } = learned(0, 10).design(2);
    expect(Math.ceil(limit / up)).toBe(3);
  });

  it("is higher where all engines fail now and then, so that none is emptied for it", () => {
    expect(learned(0.01, 10).rate).toBe(0.01);
    expect(learned(0.025, 10).rate).toBe(0.03);
  });

  it("is forgotten, and not by a step of the clock alone", () => {
    const base = learned(0.025, 10);
    base.add(0, 0, 700_000);
    expect(base.rate).toBe(0.03);
    for (let s = 0; s < 3600; s++) base.add(0, 20, 700_000 + s * 1000);
    expect(base.rate).toBeLessThan(0.01);
  });

  it("asks for more where more is answered: false alarms are counted by the hour", () => {
    const base = new BaseRate(0);
    const limits = [0.1, 1, 8, 100].map((rps) => base.design(rps).limit);
    expect(limits).toEqual([...limits].sort((a, b) => a - b));
    expect(new Set(limits).size).toBe(4);
  });
});

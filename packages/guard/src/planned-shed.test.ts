import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { FirstShare, plannedShed, retryAfterS, SHED_LAPSES_MS, type ShedFacts } from "./planned-shed.ts";

const FACTS: ShedFacts = { shed: 0.3, firstShare: 0.5, first: true, keyHash2: 7, sinceControlMs: 0 };

const random = seededRandom(3);
const KEYS = Array.from({ length: 20_000 }, () => Math.floor(random() * 2 ** 32));

function partShed(facts: Partial<ShedFacts>): number {
  return KEYS.filter((keyHash2) => plannedShed({ ...FACTS, ...facts, keyHash2 })).length / KEYS.length;
}

/** Five standard deviations of a binomial draw. */
const near = (part: number, expected: number): void =>
  expect(Math.abs(part - expected)).toBeLessThanOrEqual(5 * Math.sqrt((expected * (1 - expected)) / KEYS.length));

describe("a planned shed", () => {
  it("takes first requests first, and conversations that run only when those are not enough", () => {
    for (const [shed, firstShare] of [
      [0.3, 0.5],
      [0.3, 0.3],
      [0.3, 0.1],
      [0.9, 0.6],
    ] as const) {
      const first = Math.min(1, shed / firstShare);
      const later = Math.max(0, (shed - firstShare) / (1 - firstShare));
      near(partShed({ shed, firstShare, first: true }), first);
      near(partShed({ shed, firstShare, first: false }), later);
      expect(firstShare * first + (1 - firstShare) * later).toBeCloseTo(shed, 12);
    }
  });

  it("sheds or keeps a conversation as a whole: the same keys each time, and all of them when more is shed", () => {
    for (const keyHash2 of KEYS.slice(0, 3000)) {
      const facts = { ...FACTS, first: false, firstShare: 0.1, keyHash2 };
      const taken = plannedShed({ ...facts, shed: 0.4 });
      expect(plannedShed({ ...facts, shed: 0.4, sinceControlMs: 59_999 })).toBe(taken);
      if (taken) {
        expect(plannedShed({ ...facts, shed: 0.6 })).toBe(true);
        expect(plannedShed({ ...facts, shed: 0.4, first: true })).toBe(true);
      }
    }
  });

  it("takes nothing of none, and all of all", () => {
    for (const firstShare of [0, 0.5, 1])
      for (const first of [true, false]) {
        expect(partShed({ shed: 0, firstShare, first })).toBe(0);
        expect(partShed({ shed: Number.NaN, firstShare, first })).toBe(0);
        expect(partShed({ shed: 1, firstShare, first })).toBe(1);
      }
  });

  it("lapses a minute after the last word from the control plane", () => {
    expect(plannedShed({ ...FACTS, shed: 1, sinceControlMs: SHED_LAPSES_MS - 1 })).toBe(true);
    expect(plannedShed({ ...FACTS, shed: 1, sinceControlMs: SHED_LAPSES_MS })).toBe(false);
  });
});

describe("the part of first requests", () => {
  it("is taken to be all until something is seen, and then what was seen", () => {
    const share = new FirstShare();
    expect(share.value).toBe(1);
    for (let i = 0; i < 4000; i++) share.add(i % 4 === 0, i * 100);
    expect(share.value).toBeCloseTo(0.25, 2);
    for (let i = 0; i < 4000; i++) share.add(i % 2 === 0, 400_000 + i * 100);
    expect(share.value).toBeCloseTo(0.5, 2);
  });
});

describe("Retry-After of our own", () => {
  it("is 1 to 30 whole seconds, each as likely", () => {
    const counts = new Map<number, number>();
    for (let i = 0; i < 3000; i++) {
      const seconds = retryAfterS(i / 3000);
      counts.set(seconds, (counts.get(seconds) ?? 0) + 1);
    }
    expect([...counts.keys()]).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
    expect(new Set(counts.values())).toEqual(new Set([100]));
  });
});

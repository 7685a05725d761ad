import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { plannedShed, retryAfterS, SHED_LAPSES_MS } from "./shed.ts";

describe("a planned shed", () => {
  it("takes its part of the keys, and the same ones each time", () => {
    const random = seededRandom(3);
    const keys = Array.from({ length: 20_000 }, () => Math.floor(random() * 2 ** 32));
    for (const shed of [0.05, 0.3, 0.9]) {
      const taken = keys.filter((key) => plannedShed(shed, key, 0));
      // Five standard deviations of a binomial draw.
      expect(Math.abs(taken.length / keys.length - shed)).toBeLessThan(
        5 * Math.sqrt((shed * (1 - shed)) / keys.length),
      );
      expect(keys.filter((key) => plannedShed(shed, key, 59_999))).toEqual(taken);
    }
  });

  it("takes a key at a larger part whenever it takes it at a smaller one", () => {
    for (let key = 0; key < 5000; key++) if (plannedShed(0.2, key, 0)) expect(plannedShed(0.4, key, 0)).toBe(true);
  });

  it("takes nothing of none, and all of all", () => {
    for (const key of [0, 1, 0x7fff_ffff, 0xffff_ffff]) {
      expect(plannedShed(0, key, 0)).toBe(false);
      expect(plannedShed(Number.NaN, key, 0)).toBe(false);
      expect(plannedShed(1, key, 0)).toBe(true);
    }
  });

  it("lapses a minute after the last word from the control plane", () => {
    expect(plannedShed(1, 7, SHED_LAPSES_MS - 1)).toBe(true);
    expect(plannedShed(1, 7, SHED_LAPSES_MS)).toBe(false);
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

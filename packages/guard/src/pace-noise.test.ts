import { seededRandom, standardNormal } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { PaceNoise } from "./pace-noise.ts";

/** Noise learned from a first-order autoregression of this correlation and deviation, of two engines with means of their own. */
function learned(correlation: number, deviation: number): PaceNoise {
  const noise = new PaceNoise();
  const random = seededRandom(9);
  const last = [0, 0];
  for (let i = 0; i < 20_000; i++) {
    const engine = i % 2;
    last[engine] = correlation * last[engine]! + Math.sqrt(1 - correlation ** 2) * standardNormal(random);
    noise.add(`e${engine}`, 0.3 * engine + deviation * last[engine]!);
  }
  return noise;
}

describe("the noise of a pace", () => {
  it("has the mean absolute deviation for its spread, within limits", () => {
    expect(learned(0, 0.6).of("another").spread).toBeCloseTo(0.6 * Math.sqrt(2 / Math.PI), 1);
    const spreads = [learned(0, 0.01), learned(0, 5), new PaceNoise()].map((noise) => noise.of("another").spread);
    expect(spreads).toEqual([0.3, 0.8, 0.5]);
  });

  it("makes an observation worth what is new in it", () => {
    expect(learned(0, 0.5).of("another").worth).toBeGreaterThan(0.85);
    expect(Math.abs(learned(0.6, 0.5).of("another").worth - 0.25)).toBeLessThan(0.08);
    expect(Math.abs(learned(0.8, 0.5).of("another").worth - 1 / 9)).toBeLessThan(0.05);
  });

  it("judges an engine by the others, and forgets one that is gone", () => {
    const noise = new PaceNoise();
    for (let i = 0; i < 500; i++) noise.add("calm", 0);
    for (let i = 0; i < 500; i++) noise.add("wild", i % 2 === 0 ? 1 : -1);
    expect([noise.of("wild").spread, noise.of("calm").spread]).toEqual([0.3, 0.8]);
    noise.forget("wild");
    expect(noise.of("calm").spread).toBeCloseTo(0.5, 9);
  });
});

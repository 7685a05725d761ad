import { describe, expect, it } from "vitest";
import { seededRandom } from "./random.ts";

describe("seeded numbers", () => {
  it("repeat for a seed and differ between seeds", () => {
    const draw = (seed: number) => Array.from({ length: 5 }, seededRandom(seed));
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it("lie in [0, 1), with the mean and variance of even spread", () => {
    const random = seededRandom(1);
    const numbers = Array.from({ length: 100_000 }, random);
    expect(numbers.every((each) => each >= 0 && each < 1)).toBe(true);
    const mean = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
    const variance = numbers.reduce((sum, each) => sum + (each - mean) ** 2, 0) / numbers.length;
    // Six standard errors of 100,000 draws.
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.0055);
    expect(Math.abs(variance - 1 / 12)).toBeLessThan(0.0015);
  });
});

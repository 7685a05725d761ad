import { seededRandom } from "@guidevane/core";
import { expect, it } from "vitest";
import { ln } from "./ln.ts";

it("is within 1e-15 of Math.log over all draws and over all magnitudes", () => {
  const random = seededRandom(7);
  let worst = 0;
  for (let i = 0; i < 300_000; i++) {
    const x = i % 2 === 0 ? (Math.floor(random() * 2 ** 32) + 0.5) / 2 ** 32 : Math.exp((random() - 0.5) * 1400);
    const exact = Math.log(x);
    worst = Math.max(worst, Math.abs(ln(x) - exact) / Math.max(1, Math.abs(exact)));
  }
  expect(worst).toBeLessThan(1e-15);
});

it("keeps its relative accuracy next to 1, where the logarithm vanishes", () => {
  for (let exponent = 1; exponent <= 50; exponent++) {
    for (const x of [1 + 2 ** -exponent, 1 - 2 ** -exponent]) {
      expect(Math.abs(ln(x) / Math.log1p(x - 1) - 1)).toBeLessThan(1e-14);
    }
  }
});

it("is exactly 0 at 1 and the nearest double to ln 2 at 2", () => {
  expect(ln(1)).toBe(0);
  expect(ln(2)).toBe(Math.LN2);
});

it("does not fall where its argument rises across a power of two and across the square root of two", () => {
  for (const centre of [1, 2, 0.5, Math.SQRT2, Math.SQRT1_2, 1024]) {
    const step = centre * 2 ** -52;
    for (let i = -20; i < 20; i++) expect(ln(centre + (i + 1) * step)).toBeGreaterThanOrEqual(ln(centre + i * step));
  }
});

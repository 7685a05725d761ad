import { describe, expect, it } from "vitest";
import { keylessHash, rendezvousDraw, rendezvousScore, staysUnderFactor, surelyScoresAbove } from "./draw.ts";
import { xxh32, xxh32OfWord } from "./xxh32.ts";

const idHashes = ["a", "b", "c", "d", "e"].map((id) => xxh32(Buffer.from(id), 0, 1, 0));

/** χ² of counts against expected ones. */
function chiSquare(counts: readonly number[], expected: readonly number[]): number {
  return counts.reduce((sum, count, i) => sum + (count - expected[i]!) ** 2 / expected[i]!, 0);
}

describe("weighted rendezvous", () => {
  it("gives each candidate its weight, within what chance allows", () => {
    const weights = [5, 1, 3, 0.5, 0.5];
    const draws = 100_000;
    const counts = weights.map(() => 0);
    for (let key = 0; key < draws; key++) {
      const scores = weights.map((weight, i) =>
        rendezvousScore(rendezvousDraw(xxh32OfWord(key, 1), idHashes[i]!), weight),
      );
      counts[scores.indexOf(Math.min(...scores))]!++;
    }
    // 4 degrees of freedom: 23.5 is exceeded once in 10,000.
    expect(
      chiSquare(
        counts,
        weights.map((weight) => weight * (draws / 10)),
      ),
    ).toBeLessThan(23.5);
  });

  it("moves only the keys of a candidate that is taken away, to the others by their weights", () => {
    const weights = [5, 1, 3, 0.5, 0.5];
    const moved = [0, 0, 0, 0];
    for (let key = 0; key < 100_000; key++) {
      const hash2 = xxh32OfWord(key, 1);
      const scores = weights.map((weight, i) => rendezvousScore(rendezvousDraw(hash2, idHashes[i]!), weight));
      const before = scores.indexOf(Math.min(...scores));
      const after = 1 + scores.slice(1).indexOf(Math.min(...scores.slice(1)));
      if (before === 0) moved[after - 1]!++;
      else if (after !== before) expect.fail(`key ${key} moved from ${before} to ${after}`);
    }
    const all = moved.reduce((sum, count) => sum + count, 0);
    // 3 degrees of freedom.
    expect(
      chiSquare(
        moved,
        [1, 3, 0.5, 0.5].map((weight) => (weight / 5) * all),
      ),
    ).toBeLessThan(21.1);
  });
});

describe("telling a score above another without its logarithm", () => {
  it("is never wrong, and right for most of many candidates", () => {
    let told = 0;
    let above = 0;
    for (let key = 0; key < 100_000; key++) {
      const draw = key < 1000 ? 2 ** 32 - 1 - key : xxh32OfWord(key, 1);
      const weight = 0.01 + (xxh32OfWord(key, 2) % 1000) / 100;
      // As close to the score as another score may be, or anywhere above 0.
      const score = rendezvousScore(draw, weight);
      const least = key % 2 === 0 ? score : (score * (xxh32OfWord(key, 3) % 1000)) / 2000;
      const isTold = surelyScoresAbove(draw, weight, least);
      if (isTold && !(score > least)) expect.fail(`draw ${draw}, weight ${weight}: ${score} is not above ${least}`);
      if (isTold) told++;
      if (score > least) above++;
    }
    expect(told / above).toBeGreaterThan(0.5);
    expect(surelyScoresAbove(0, 1, Number.POSITIVE_INFINITY)).toBe(false);
  });
});

describe("the draw against a factor", () => {
  it("keeps all keys at full factor and none at zero", () => {
    for (let key = 0; key < 10_000; key++) {
      const hash2 = xxh32OfWord(key, 1);
      if (!staysUnderFactor(hash2, idHashes[0]!, 65_535)) expect.fail(`key ${key} leaves a healthy engine`);
      if (staysUnderFactor(hash2, idHashes[0]!, 0)) expect.fail(`key ${key} stays at factor 0`);
    }
  });

  it("keeps the factor's part of the keys, and the same keys while the factor falls", () => {
    const keys = 100_000;
    const kept = (factor: number) =>
      Array.from({ length: keys }, (_, key) => staysUnderFactor(xxh32OfWord(key, 1), idHashes[1]!, factor));
    const half = kept(32_768);
    const quarter = kept(16_384);
    const count = (list: readonly boolean[]) => list.filter(Boolean).length;
    // Five standard deviations.
    expect(Math.abs(count(half) - keys / 2)).toBeLessThan(5 * Math.sqrt(keys / 4));
    expect(Math.abs(count(quarter) - keys / 4)).toBeLessThan(5 * Math.sqrt((keys * 3) / 16));
    expect(quarter.every((stays, key) => !stays || half[key])).toBe(true);
  });
});

it("spreads requests without a key evenly over the slots", () => {
  const counts = new Array<number>(64).fill(0);
  const draws = 64_000;
  for (let count = 0; count < draws; count++) counts[Math.floor((keylessHash(count, 0) * 64) / 2 ** 32)]!++;
  // 63 degrees of freedom: 113 is exceeded once in 10,000.
  const chi = chiSquare(
    counts,
    counts.map(() => draws / 64),
  );
  expect(chi).toBeLessThan(113);
});

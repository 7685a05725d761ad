import { GuidevaneError, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { buildRing, countSlots, editRing, type Ring } from "./ring.ts";

const ids = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `e${from + i}`);

function owners(ring: Ring): string[] {
  return Array.from(ring.owners, (owner) => ring.engines[owner]!);
}

/** Slots whose owner is another one. */
function differing(some: Ring, others: Ring): number {
  const after = owners(others);
  return owners(some).filter((owner, slot) => owner !== after[slot]).length;
}

/** Random weights: some zero, some tiny, some equal, one engine now and then alone. */
function randomWeights(random: () => number, count: number): number[] {
  const kind = random();
  const weights: number[] = Array.from({ length: count }, () =>
    random() < 0.2 ? 0 : kind < 0.3 ? 1 : kind < 0.6 ? random() ** 8 : random(),
  );
  if (kind > 0.95) weights.fill(0);
  if (!weights.some((weight) => weight > 0)) weights[Math.floor(random() * count)] = 1;
  return weights;
}

/** The least moves over all counts within one slot, by trying them all: the oracle of small rings. */
function leastMoves(weights: readonly number[], slots: number, held: readonly number[]): number {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let least = Number.POSITIVE_INFINITY;
  const choose = (engine: number, left: number, moves: number): void => {
    if (engine === weights.length) {
      if (left === 0) least = Math.min(least, moves);
      return;
    }
    // A share that is whole but for a millionth of a slot is whole.
    let exact = (weights[engine]! / sum) * slots;
    if (Math.abs(exact - Math.round(exact)) < 1e-6) exact = Math.round(exact);
    for (const count of new Set([Math.floor(exact), Math.ceil(exact)]))
      choose(engine + 1, left - count, moves + Math.max(0, count - held[engine]!));
  };
  choose(0, slots, 0);
  return least;
}

describe("buildRing", () => {
  it("gives each engine within one slot of weight × slots, and weight zero nothing", () => {
    const random = seededRandom(1);
    for (let round = 0; round < 500; round++) {
      const count = 1 + Math.floor(random() * 40);
      const weights = randomWeights(random, count);
      const slots = 2 ** (6 + Math.floor(random() * 7));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      const counts = countSlots(buildRing(ids(count), weights, slots).owners, count);
      for (let engine = 0; engine < count; engine++) {
        const exact = (weights[engine]! / sum) * slots;
        if (Math.abs(counts[engine]! - exact) >= 1) expect.fail(`${counts[engine]} slots for ${exact}`);
        if (weights[engine] === 0 && counts[engine] !== 0) expect.fail(`${counts[engine]} slots for a weight of 0`);
      }
    }
  });

  it("gives exact shares exactly, whatever the rounding of the weights' sum", () => {
    // 0.3 − 0.05 is a little under a quarter, and 0.1 + 0.2 a little over 0.3.
    const quarter = [0.5, 0.3 - 0.05, 0.25];
    expect(Array.from(countSlots(buildRing(ids(3), quarter, 4096).owners, 3))).toEqual([2048, 1024, 1024]);
    const eighth = Array.from({ length: 8 }, () => 0.1 + 0.2);
    expect(Array.from(countSlots(buildRing(ids(8), eighth, 64).owners, 8))).toEqual(eighth.map(() => 8));
  });

  it("strews an engine's slots over the ring", () => {
    const { owners } = buildRing(["a", "b"], [0.5, 0.5], 4096);
    for (let eighth = 0; eighth < 8; eighth++) {
      const part = owners.subarray(eighth * 512, (eighth + 1) * 512);
      const ofA = part.filter((owner) => owner === 0).length;
      // Half of 512 within five standard deviations of a fair coin.
      expect(Math.abs(ofA - 256)).toBeLessThan(57);
    }
  });

  it("is the same each time", () => {
    expect(buildRing(["a", "b", "c"], [1, 2, 4], 256)).toEqual(buildRing(["a", "b", "c"], [1, 2, 4], 256));
  });

  it.each([
    ["slots that are no power of two", ["a"], [1], 100],
    ["no slots", ["a"], [1], 0],
    ["weights that are all zero", ["a", "b"], [0, 0], 64],
    ["a negative weight", ["a", "b"], [1, -1], 64],
    ["a weight that is not a number", ["a", "b"], [1, Number.NaN], 64],
    ["an infinite weight", ["a", "b"], [1, Number.POSITIVE_INFINITY], 64],
    ["a weight too few", ["a", "b"], [1], 64],
    ["no engines", [], [], 64],
  ])("refuses %s", (_, engines, weights, slots) => {
    expect(() => buildRing(engines, weights, slots)).toThrow(GuidevaneError);
  });
});

describe("editRing", () => {
  it("moves the minimum for 10,000 random pairs of weight vectors, and meets the new weights", () => {
    const random = seededRandom(2);
    for (let round = 0; round < 10_000; round++) {
      const count = 2 + Math.floor(random() * 9);
      const slots = 64;
      const before = buildRing(ids(count), randomWeights(random, count), slots);
      const weights = randomWeights(random, count);
      const sum = weights.reduce((total, weight) => total + weight, 0);
      const after = editRing(before, ids(count), weights, slots);
      const held = countSlots(before.owners, count);
      const counts = countSlots(after.owners, count);
      let moved = 0;
      for (let slot = 0; slot < slots; slot++) if (before.owners[slot] !== after.owners[slot]) moved++;
      let positive = 0;
      for (let engine = 0; engine < count; engine++) {
        positive += Math.max(0, counts[engine]! - held[engine]!);
        if (Math.abs(counts[engine]! - (weights[engine]! / sum) * slots) >= 1)
          expect.fail(`round ${round}: engine ${engine} has ${counts[engine]} slots`);
      }
      if (moved !== positive || moved !== after.moved || moved !== leastMoves(weights, slots, Array.from(held)))
        expect.fail(`round ${round}: ${moved} moved, ${positive} needed, ${after.moved} said`);
    }
  });

  it("moves no more than the weights' total-variation distance, plus the rounding", () => {
    const random = seededRandom(3);
    const count = 40;
    let weights = randomWeights(random, count);
    let ring: Ring = buildRing(ids(count), weights, 4096);
    for (let step = 0; step < 200; step++) {
      const next = weights.map((weight) => weight * (0.9 + 0.2 * random()));
      const share = (list: readonly number[]) => {
        const sum = list.reduce((total, weight) => total + weight, 0);
        return list.map((weight) => weight / sum);
      };
      const [a, b] = [share(weights), share(next)];
      const distance = a.reduce((total, each, i) => total + Math.max(0, b[i]! - each), 0);
      const edited = editRing(ring, ids(count), next, 4096);
      expect(edited.moved).toBeLessThanOrEqual(distance * 4096 + count);
      ring = edited;
      weights = next;
    }
  });

  it("moves nothing when the weights stay", () => {
    const random = seededRandom(4);
    for (let round = 0; round < 200; round++) {
      const weights = randomWeights(random, 12);
      const ring = buildRing(ids(12), weights, 1024);
      const again = editRing(ring, ids(12), weights, 1024);
      expect(again.moved).toBe(0);
      expect(again.owners).toEqual(ring.owners);
    }
  });

  it("knows engines by id: a list in another order moves nothing", () => {
    const ring = buildRing(["a", "b", "c"], [1, 2, 5], 512);
    const turned = editRing(ring, ["c", "a", "b"], [5, 1, 2], 512);
    expect(turned.moved).toBe(0);
    expect(owners(turned)).toEqual(owners(ring));
  });

  it("takes all slots of an engine that left, and none between those that stay", () => {
    const ring = buildRing(["a", "b", "c", "d"], [1, 1, 1, 1], 4096);
    const without = editRing(ring, ["a", "b", "d"], [1, 1, 1], 4096);
    const after = owners(without);
    const strays = owners(ring).filter((owner, slot) => owner !== "c" && after[slot] !== owner);
    expect(strays).toEqual([]);
    expect(without.moved).toBe(1024);
  });

  it("takes from an engine slots all over the ring", () => {
    const ring = buildRing(["a", "b"], [1, 0], 4096);
    const edited = editRing(ring, ["a", "b"], [0.75, 0.25], 4096);
    const quarters = [0, 1, 2, 3].map(
      (quarter) => edited.owners.subarray(quarter * 1024, (quarter + 1) * 1024).filter((owner) => owner === 1).length,
    );
    for (const count of quarters) expect(Math.abs(count - 256)).toBeLessThan(70);
  });

  it("moves back the slots it moved when a weight swings back, but for a few at first", () => {
    const ring = buildRing(["a", "b", "c"], [2, 1, 1], 1024);
    const there = editRing(ring, ["a", "b", "c"], [1, 2, 1], 1024);
    const back = editRing(there, ["a", "b", "c"], [2, 1, 1], 1024);
    const again = editRing(back, ["a", "b", "c"], [1, 2, 1], 1024);
    expect(differing(ring, back)).toBeLessThanOrEqual(0.01 * 1024);
    expect(differing(there, again)).toBeLessThanOrEqual(0.005 * 1024);
    expect(differing(back, editRing(again, ["a", "b", "c"], [2, 1, 1], 1024))).toBe(0);
  });

  it("gives an engine that comes back its own slots, and those that stayed keep theirs", () => {
    const random = seededRandom(5);
    const rounds = Array.from({ length: 60 }, (_, round) => {
      const engines = Array.from({ length: 3 + Math.floor(random() * 12) }, (_, i) => `engine-${round}-${i}`);
      // Equal or mixed.
      const weights = engines.map(() => (round % 2 === 0 ? 1 : 0.2 + random()));
      const gone = Math.floor(random() * engines.length);
      const isThere = (_: unknown, index: number): boolean => index !== gone;
      const ring = buildRing(engines, weights, 4096);
      const away = editRing(ring, engines.filter(isThere), weights.filter(isThere), 4096);
      return differing(ring, editRing(away, engines, weights, 4096)) / 4096;
    });
    expect(rounds.reduce((sum, part) => sum + part, 0) / rounds.length).toBeLessThan(0.01);
    expect(Math.max(...rounds)).toBeLessThan(0.025);
  });

  it("leaves most slots at home where plans change a little while an engine is away and comes back by steps", () => {
    const random = seededRandom(6);
    const engines = ["a", "b", "c", "d"];
    const noisy = (count: number) => Array.from({ length: count }, () => 0.95 + 0.1 * random());
    const ring = buildRing(engines, [1, 1, 1, 1], 4096);
    let now: Ring = ring;
    for (let tick = 0; tick < 5; tick++) now = editRing(now, ["a", "b", "d"], noisy(3), 4096);
    for (const part of [0.3, 0.6, 1]) now = editRing(now, engines, [1, 1, part, 1], 4096);
    // With slots taken in one order for all a third of them move.
    expect(differing(ring, now)).toBeLessThan(0.05 * 4096);
  });

  it("builds anew when the number of slots changes", () => {
    const ring = buildRing(["a", "b"], [1, 1], 256);
    expect(editRing(ring, ["a", "b"], [1, 1], 512).owners).toEqual(buildRing(["a", "b"], [1, 1], 512).owners);
  });
});

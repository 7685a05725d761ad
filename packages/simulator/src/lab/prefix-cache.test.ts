import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { IntMap } from "./int-map.ts";
import { PrefixCache } from "./prefix-cache.ts";

describe("the blocks of a replica", () => {
  it("are conserved, and agree with a plain account of holders, through 20,000 random steps", () => {
    const random = seededRandom(8);
    const cache = new PrefixCache(200);
    const ids = Int32Array.from({ length: 1000 }, (_, index) => index);
    const holders: { from: number; count: number; own: number; places: Int32Array }[] = [];
    for (let step = 0; step < 20_000; step++) {
      const from = Math.floor(random() * 90) * 10;
      const count = 1 + Math.floor(random() * 10);
      const own = Math.floor(random() * 4);
      if (random() < 0.5 && cache.hasRoom(count + own)) {
        const places = new Int32Array(count);
        cache.hold(ids, from, count, places, cache.find(ids, from, count, places));
        cache.addPrivate(own);
        holders.push({ from, count, own, places });
      } else if (holders.length > 0) {
        const [gone] = holders.splice(Math.floor(random() * holders.length), 1);
        cache.release(gone!.places, gone!.count);
        cache.addPrivate(-gone!.own);
        cache.keep(ids, gone!.from + gone!.count, random() < 0.5 ? 1 : 0);
      }
      const held = new Set(holders.flatMap((each) => Array.from(ids.subarray(each.from, each.from + each.count))));
      const own_ = holders.reduce((sum, each) => sum + each.own, 0);
      if (step % 20 !== 0) continue;
      expect(cache.held).toBe(held.size + own_);
      expect(cache.held + cache.kept + cache.free).toBe(200);
      expect(cache.free).toBeGreaterThanOrEqual(0);
      for (const id of held) expect(cache.find(ids, id, 1)).toBe(1);
    }
  });
});

describe("the map of whole numbers", () => {
  it("answers as a Map does", () => {
    const random = seededRandom(4);
    const map = new IntMap(8);
    const plain = new Map<number, number>();
    for (let step = 0; step < 50_000; step++) {
      const key = Math.floor(random() * 300);
      expect(map.get(key)).toBe(plain.get(key) ?? -1);
      if (plain.has(key)) {
        plain.delete(key);
        map.delete(key);
      } else {
        plain.set(key, step);
        map.add(key, step);
      }
      expect(map.size).toBe(plain.size);
    }
  });
});

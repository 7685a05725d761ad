import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type RunningAttempt, RunningAttempts } from "./running-attempts.ts";

interface One extends RunningAttempt<One> {
  readonly name: string;
}

describe("attempts under way", () => {
  it("are found and taken out as those of a map", () => {
    const random = seededRandom(3);
    const table = new RunningAttempts<One>();
    const map = new Map<number, One>();
    for (let i = 0; i < 20_000; i++) {
      // Many share a chain.
      const number = Math.floor(random() * 20) * 4096 + Math.floor(random() * 3);
      expect(table.find(number)).toBe(map.get(number) ?? null);
      if (map.has(number)) {
        expect(table.take(number)).toBe(map.get(number));
        map.delete(number);
      } else {
        expect(table.take(number)).toBeNull();
        const one: One = { number, next: null, name: `n${i}` };
        table.add(one);
        map.set(number, one);
      }
    }
    expect(new Set(table)).toEqual(new Set(map.values()));
  });

  it("may be taken out while they are gone through", () => {
    const table = new RunningAttempts<One>();
    for (let i = 0; i < 30; i++) table.add({ number: i * 4096, next: null, name: "" });
    for (const { number } of table) if (number % 8192 === 0) table.take(number);
    expect([...table].length).toBe(15);
  });
});

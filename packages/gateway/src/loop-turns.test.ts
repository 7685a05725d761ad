import { describe, expect, it } from "vitest";
import { inTurns, LoopTurns, partsInTurns } from "./loop-turns.ts";

describe("turns of the event loop", () => {
  it("are given one by one, in the order in which they were asked for", async () => {
    const queue = new LoopTurns();
    const turns = countTurns();
    const given: [string, number][] = [];
    await Promise.all(["a", "b", "c"].map((who) => queue.next().then(() => given.push([who, turns.count]))));
    turns.stop();
    expect(given.map(([who]) => who)).toEqual(["a", "b", "c"]);
    expect(new Set(given.map(([, at]) => at)).size).toBe(3);
  });
});

describe("a task for each of many things", () => {
  it("is done for so many in a turn, in their order, and for few at once", async () => {
    const turns = countTurns();
    const done: [number, number][] = [];
    await inTurns([0, 1, 2, 3, 4], 2, (thing) => done.push([thing, turns.count]));
    turns.stop();
    expect(done.map(([thing]) => thing)).toEqual([0, 1, 2, 3, 4]);
    const [first, second, third] = [done[0]![1], done[2]![1], done[4]![1]];
    expect(done.map(([, at]) => at)).toEqual([first, first, second, second, third]);
    expect(new Set([first, second, third]).size).toBe(3);

    const few: number[] = [];
    const over = inTurns([1, 2], 2, (thing) => few.push(thing));
    expect(few).toEqual([1, 2]);
    await over;
  });
});

describe("work in parts", () => {
  function* parts(count: number, begun: (part: number) => void): Generator<void, string> {
    for (let part = 0; part < count; part++) {
      if (part > 0) yield;
      begun(part);
    }
    return "done";
  }

  it("is done a part in a turn, and a single part at once", async () => {
    const turns = countTurns();
    const begun: number[] = [];
    expect(await partsInTurns(parts(3, () => begun.push(turns.count)))).toBe("done");
    turns.stop();
    expect(new Set(begun).size).toBe(3);

    const single: number[] = [];
    const over = partsInTurns(parts(1, (part) => single.push(part)));
    expect(single).toEqual([0]);
    await over;
  });
});

/** Counts the turns of the event loop from now on. */
function countTurns(): { readonly count: number; stop(): void } {
  let count = 0;
  let counting = true;
  const next = (): void => {
    count += 1;
    if (counting) setImmediate(next);
  };
  setImmediate(next);
  return {
    get count() {
      return count;
    },
    stop() {
      counting = false;
    },
  };
}

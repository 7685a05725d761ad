import { describe, expect, it } from "vitest";
import { LoopTurns } from "./loop-turns.ts";

describe("turns of the event loop", () => {
  it("are given one by one, in the order in which they were asked for", async () => {
    const turns = new LoopTurns();
    let turn = 0;
    let counting = true;
    const count = (): void => {
      turn += 1;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    const given: [string, number][] = [];
    await Promise.all(["a", "b", "c"].map((who) => turns.next().then(() => given.push([who, turn]))));
    counting = false;
    expect(given.map(([who]) => who)).toEqual(["a", "b", "c"]);
    expect(new Set(given.map(([, at]) => at)).size).toBe(3);
  });
});

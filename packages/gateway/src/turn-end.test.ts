import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { atTurnEnd } from "./turn-end.ts";

describe("the end of a turn", () => {
  it("runs what waits for it in order, and what that adds in the next one", async () => {
    const ran: string[] = [];
    const task = (name: string, then?: () => void) => ({
      atTurnEnd() {
        ran.push(name);
        then?.();
      },
    });
    atTurnEnd(task("a", () => atTurnEnd(task("c"))));
    atTurnEnd(task("b"));
    await Promise.resolve();
    expect(ran).toEqual([]);
    await nextTurn();
    expect(ran).toEqual(["a", "b"]);
    await nextTurn();
    expect(ran).toEqual(["a", "b", "c"]);
  });

  it("comes for the others where one fails", async () => {
    const ran: string[] = [];
    const failed = new Promise((resolve) => process.once("uncaughtException", resolve));
    const others = process.listeners("uncaughtException").slice(0, -1);
    for (const each of others) process.off("uncaughtException", each);
    atTurnEnd({
      atTurnEnd() {
        throw new Error("one fails");
      },
    });
    atTurnEnd({ atTurnEnd: () => ran.push("other") });
    expect(await failed).toEqual(new Error("one fails"));
    for (const each of others) process.on("uncaughtException", each);
    await nextTurn();
    await nextTurn();
    expect(ran).toEqual(["other"]);
  });
});

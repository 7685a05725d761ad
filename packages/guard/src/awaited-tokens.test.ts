import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type AwaitedToken, AwaitedTokens } from "./awaited-tokens.ts";

interface One extends AwaitedToken<One> {
  readonly name: number;
}

const one = (name: number): One => ({ name, earlier: null, later: null });

function namesOf(list: AwaitedTokens<One>): number[] {
  const names: number[] = [];
  list.each(({ name }) => names.push(name));
  return names;
}

describe("attempts that wait for their first token", () => {
  it("are gone through as those of a set, in the order in which they began", () => {
    const random = seededRandom(5);
    const list = new AwaitedTokens<One>();
    const set = new Set<One>();
    const all: One[] = [];
    for (let i = 0; i < 2000; i++) {
      if (random() < 0.55) {
        all.push(one(i));
        list.add(all.at(-1)!);
        set.add(all.at(-1)!);
      } else if (all.length > 0) {
        // Often one that is out already.
        const which = all[Math.floor(random() * all.length)]!;
        list.drop(which);
        set.delete(which);
      }
      if (i % 50 === 0) expect(namesOf(list)).toEqual([...set].map(({ name }) => name));
    }
    for (const each of all) list.drop(each);
    expect(namesOf(list)).toEqual([]);
  });

  it("may be taken out while they are gone through", () => {
    const list = new AwaitedTokens<One>();
    for (let i = 0; i < 6; i++) list.add(one(i));
    list.each((each) => {
      if (each.name % 2 === 0) list.drop(each);
    });
    expect(namesOf(list)).toEqual([1, 3, 5]);
  });

  it("keep none of the others once they are out", () => {
    const list = new AwaitedTokens<One>();
    const three = [one(0), one(1), one(2)];
    for (const each of three) list.add(each);
    for (const each of three) list.drop(each);
    for (const each of three) expect([each.earlier, each.later]).toEqual([null, null]);
  });
});

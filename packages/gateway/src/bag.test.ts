import { expect, test } from "vitest";
import { Bag } from "./bag.ts";

const thing = (name: string) => ({ name, place: -1 });
const names = (bag: Bag<ReturnType<typeof thing>>): string[] => [...bag].map(({ name }) => name).sort();

test("Things go in any order, and one that is out stays out.", () => {
  const bag = new Bag<ReturnType<typeof thing>>();
  const [a, b, c] = [thing("a"), thing("b"), thing("c")];
  for (const one of [a, b, c]) bag.add(one);
  expect(bag.size).toBe(3);
  bag.delete(a);
  expect(names(bag)).toEqual(["b", "c"]);
  bag.delete(a);
  expect(names(bag)).toEqual(["b", "c"]);
  bag.delete(c);
  bag.add(a);
  expect(names(bag)).toEqual(["a", "b"]);
  bag.delete(b);
  bag.delete(a);
  expect(bag.size).toBe(0);
});

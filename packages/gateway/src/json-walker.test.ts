import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { compilePaths } from "./json-paths.ts";
import { JsonWalker, VALUE } from "./json-walker.ts";

const PATHS = [
  ["id", 1],
  ["usage.prompt", 2],
  ["usage", 3],
  ["choices[].index", 4],
  ["choices[]", 5],
  ["choices[].delta.role", 6],
  ["choices[].delta.*", 7],
  ["list[][]", 8],
] as const;
const ROOT = compilePaths(PATHS);

type Told = [id: number, kind: number, value: unknown];

function walk(json: Buffer, cut: (at: number) => number): { told: Told[]; done: boolean } {
  const told: Told[] = [];
  const walker: JsonWalker = new JsonWalker(ROOT, (id, kind, size) =>
    told.push([id, kind, kind === VALUE.text ? [size, walker.text] : size]),
  );
  for (let at = 0; at < json.length; ) {
    const end = Math.min(json.length, at + cut(at));
    walker.push(json, at, end);
    at = end;
  }
  return { told, done: walker.done };
}

/** What the walker should tell, by way of `JSON.parse`: in the order of the document, the inner before the outer. */
function oracle(value: unknown, at: { ids: ReadonlyMap<string, number>; path: string }, told: Told[]): void {
  const { ids, path } = at;
  const step = (name: string) => {
    const named = path === "" ? name : `${path}.${name}`;
    const isPrefix = [...ids.keys()].some(
      (each) => each === named || each.startsWith(`${named}.`) || each.startsWith(`${named}[`),
    );
    return isPrefix ? named : `${path}.*`;
  };
  if (Array.isArray(value)) for (const each of value) oracle(each, { ids, path: `${path}[]` }, told);
  else if (typeof value === "object" && value !== null)
    for (const [name, each] of Object.entries(value)) oracle(each, { ids, path: step(name) }, told);
  const id = ids.get(path);
  if (id !== undefined) told.push([id, ...tell(value)]);
}

function tell(value: unknown): [number, unknown] {
  if (value === null) return [VALUE.null, 0];
  if (typeof value === "boolean") return [value ? VALUE.true : VALUE.false, 0];
  if (typeof value === "number")
    return [VALUE.number, /e/.test(JSON.stringify(value)) ? Number.NaN : Math.trunc(value)];
  if (typeof value === "string") {
    const raw = Buffer.from(JSON.stringify(value).slice(1, -1));
    return [VALUE.text, [raw.length, raw.length > 128 || raw.includes(0x5c) ? null : raw.toString("latin1")]];
  }
  if (Array.isArray(value)) return [VALUE.list, value.length > 0 ? 1 : 0];
  return [VALUE.object, Object.keys(value as object).length > 0 ? 1 : 0];
}

const NAMES = ["id", "usage", "prompt", "choices", "index", "delta", "role", "content", "list", "x", 'q"\\', ""];
const TEXTS = ["", "a", 'say "\\', "é🦊\n", "x".repeat(47), `${"y".repeat(60)}\\"`, "z".repeat(300), "[{,:"];

function randomValue(random: () => number, depth: number): unknown {
  const draw = Math.floor(random() * (depth > 4 ? 6 : 9));
  if (draw === 0) return null;
  if (draw === 1) return random() < 0.5;
  if (draw === 2) return Math.floor(random() * 1e6) - 1000;
  if (draw === 3) return random() * 1e-9;
  if (draw <= 5) return TEXTS[Math.floor(random() * TEXTS.length)]!;
  const length = Math.floor(random() * 4);
  if (draw === 6) return Array.from({ length }, () => randomValue(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length: length + 1 }, () => [
      NAMES[Math.floor(random() * NAMES.length)]!,
      randomValue(random, depth + 1),
    ]),
  );
}

describe("a JSON walker", () => {
  it("tells what JSON.parse finds at the same places, wherever the bytes are cut", () => {
    const random = seededRandom(7);
    const ids = new Map<string, number>(PATHS);
    for (let round = 0; round < 700; round++) {
      const value = {
        ...(randomValue(random, 0) as object),
        usage: randomValue(random, 2),
        choices: [randomValue(random, 3)],
      };
      const json = Buffer.from(JSON.stringify(value, null, round % 3 === 0 ? 1 : 0));
      const told: Told[] = [];
      oracle(JSON.parse(json.toString()), { ids, path: "" }, told);
      const want = { told, done: true };
      expect(walk(json, () => json.length)).toEqual(want);
      expect(walk(json, () => 1)).toEqual(want);
      expect(walk(json, () => 1 + Math.floor(random() * 9))).toEqual(want);
    }
  });

  it.each(['{"id":1', '{"id":"a', '{"trunc', "not-json", '{"id":}', "{id:1}", '{"id" 1}', "", "  ", '{"list":[1 2]}'])(
    "knows that %j is no whole document",
    (text) => {
      for (const size of [1, 100]) expect(walk(Buffer.from(text), () => size).done).toBe(false);
    },
  );

  it("passes over what nobody looks at, however large", () => {
    const json = Buffer.from(
      `{"data":[{"embedding":[${"0.25,".repeat(200_000)}1]}],"b64":"${"x".repeat(1e6)}","id":"e"}`,
    );
    expect(walk(json, () => 65_536)).toEqual({ told: [[1, VALUE.text, [1, "e"]]], done: true });
  });
});

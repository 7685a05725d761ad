import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { NATIVE_UNUSUAL } from "./create-router.ts";
import {
  HEAD,
  HEAD_WORDS,
  KEY_SOURCES,
  NO_ENGINE,
  OUT,
  OUT_WORDS,
  PATH,
  ROUTE_STATUS,
  STATE,
  TRIED_MAX,
} from "./router.ts";

const source = readFileSync(new URL("../../../native/crates/core/src/seam.rs", import.meta.url), "utf8");

/** Constants of a Rust module or variants of an enum, by name without its spelling: `KEY_HASH_2` is `keyhash2`. */
function numbersOf(opening: string): Record<string, number> {
  const start = source.indexOf(`${opening} {`);
  if (start < 0) throw new Error(`seam.rs has no ${opening}`);
  const block = source.slice(start, source.indexOf("\n}", start));
  const numbers: Record<string, number> = {};
  for (const [, name, value] of block.matchAll(/^\s+(?:pub const )?(\w+)(?:: \w+)? = ([^;,]+)[;,]$/gm)) {
    const shift = /^1 << (\d+)$/.exec(value!);
    if (/^\w+ \+ super/.test(value!)) continue;
    numbers[plain(name!)] = shift === null ? Number(value) : 1 << Number(shift[1]);
  }
  return numbers;
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

function plainNames(numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [plain(name), value]));
}

it("numbers heads, answers, paths and states as the Rust side does", () => {
  expect(numbersOf("pub mod head")).toEqual(plainNames(HEAD));
  expect(numbersOf("pub mod out")).toEqual({ ...plainNames(OUT), words: OUT_WORDS });
  expect(numbersOf("pub mod path")).toEqual(plainNames(PATH));
  expect(numbersOf("pub mod state")).toEqual(plainNames(STATE));
  expect(source).toContain(`pub const TRIED_MAX: usize = ${TRIED_MAX};`);
  expect(source).toContain("pub const WORDS: usize = TRIED + super::TRIED_MAX;");
  expect(HEAD_WORDS).toBe(HEAD.tried + TRIED_MAX);
  expect(source).toContain("pub const NONE: u32 = u32::MAX;");
  expect(NO_ENGINE).toBe(0xffff_ffff);
});

it("numbers statuses and key sources as the Rust side does, which leaves two statuses to the twin", () => {
  const { notJson, tooUnusual, ...native } = ROUTE_STATUS;
  expect(numbersOf("pub enum Status")).toEqual({ ...plainNames(native), asktwin: NATIVE_UNUSUAL });
  expect([notJson, tooUnusual]).toEqual([1, 6]);
  const sources = numbersOf("pub enum KeySource");
  for (const [name, place] of Object.entries(sources)) expect(plain(KEY_SOURCES[place]!)).toBe(name);
  expect(Object.keys(sources).length).toBeGreaterThan(4);
});

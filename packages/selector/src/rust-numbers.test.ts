import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { NATIVE_UNUSUAL } from "./create-router.ts";
import { PIECES_MAX, USE } from "./facts.ts";
import { DEPTH_MAX } from "./json-bytes.ts";
import {
  HEAD,
  HEAD_WORDS,
  KEY_SOURCES,
  NEED,
  NO_ENGINE,
  OUT,
  OUT_WORDS,
  PATH,
  REASONS,
  ROUTE_STATUS,
  TRIED_MAX,
} from "./router.ts";
import { STATE } from "./shared-state.ts";
import {
  CANDIDATE_NUMBERS,
  CANDIDATE_WORDS,
  CELL_WORDS,
  CLASS_WORDS,
  HEADER_WORDS,
  MODEL_WORDS,
  NAME_WORDS,
} from "./table-columns.ts";

const rust = (file: string) =>
  readFileSync(new URL(`../../../native/crates/core/src/${file}`, import.meta.url), "utf8");

const seam = rust("seam.rs");

/** Constants of a Rust module or variants of an enum, by name without its spelling: `KEY_HASH_2` is `keyhash2`. */
function numbersOf(text: string, opening: string): Record<string, number> {
  const start = text.indexOf(`${opening} {`);
  if (start < 0) throw new Error(`there is no ${opening}`);
  const block = text.slice(start, text.indexOf("\n}", start));
  const numbers: Record<string, number> = {};
  for (const [, name, value] of block.matchAll(/^\s+(?:pub const )?(\w+)(?:: \w+)? = ([^;,]+)[;,]$/gm)) {
    const shift = /^1 << (\d+)$/.exec(value!);
    if (/^\w+ \+ super/.test(value!)) continue;
    numbers[plain(name!)] = shift === null ? Number(value) : 1 << Number(shift[1]);
  }
  return numbers;
}

function plain(name: string): string {
  return name.replaceAll(/[-_]/g, "").toLowerCase();
}

function plainNames(numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [plain(name), value]));
}

function placesOf(names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name, place) => [plain(name), place]));
}

it("numbers heads, answers, paths and states as the Rust side does", () => {
  expect(numbersOf(seam, "pub mod head")).toEqual(plainNames(HEAD));
  expect(numbersOf(seam, "pub mod out")).toEqual({ ...plainNames(OUT), words: OUT_WORDS });
  expect(numbersOf(seam, "pub mod path")).toEqual(plainNames(PATH));
  expect(numbersOf(seam, "pub mod state")).toEqual(plainNames(STATE));
  expect(seam).toContain(`pub const TRIED_MAX: usize = ${TRIED_MAX};`);
  expect(seam).toContain("pub const WORDS: usize = TRIED + super::TRIED_MAX;");
  expect(HEAD_WORDS).toBe(HEAD.tried + TRIED_MAX);
  expect(seam).toContain("pub const NONE: u32 = u32::MAX;");
  expect(NO_ENGINE).toBe(0xffff_ffff);
});

it("numbers statuses as the Rust side does, which leaves two of them to the twin", () => {
  const { notJson, tooUnusual, ...native } = ROUTE_STATUS;
  expect(numbersOf(seam, "pub enum Status")).toEqual({ ...plainNames(native), asktwin: NATIVE_UNUSUAL });
  expect([notJson, tooUnusual]).toEqual([1, 6]);
});

it("numbers key sources and reasons as the Rust side does, as far as a router gives them", () => {
  const sources = numbersOf(seam, "pub enum KeySource");
  expect(placesOf(KEY_SOURCES)).toMatchObject(sources);
  expect(Object.keys(sources)).toHaveLength(7);
  const reasons = numbersOf(seam, "pub enum Reason");
  expect(placesOf(REASONS)).toMatchObject(reasons);
  expect(Object.keys(reasons)).toHaveLength(11);
});

it("numbers needs and uses as the Rust side does", () => {
  expect(numbersOf(rust("names.rs"), "pub mod uses")).toEqual(plainNames({ ...NEED, ...USE }));
});

it("lays out the rows of a table, and limits a scan, as the Rust side does", () => {
  const table = rust("table.rs");
  const sizes = { HEADER_WORDS, MODEL_WORDS, NAME_WORDS, CLASS_WORDS, CELL_WORDS, CANDIDATE_WORDS, CANDIDATE_NUMBERS };
  for (const [name, size] of Object.entries(sizes)) expect(table).toContain(`const ${name}: usize = ${size};`);
  expect(rust("scan.rs")).toContain(`pub const PIECES_MAX: usize = ${PIECES_MAX};`);
  expect(rust("json.rs")).toContain(`pub const DEPTH_MAX: usize = ${DEPTH_MAX};`);
});

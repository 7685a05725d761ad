import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PIECES_MAX, USE } from "./facts.ts";
import { DEPTH_MAX } from "./json-bytes.ts";
import { NEED, REASONS } from "./router.ts";
import {
  CANDIDATE_NUMBERS,
  CANDIDATE_WORDS,
  CELL_WORDS,
  CLASS_WORDS,
  HEADER_WORDS,
  MODEL_WORDS,
} from "./table-columns.ts";

/** Numbers of the Rust side beside those of `seam.rs`, which `seam.test.ts` holds. */
const rust = (file: string) =>
  readFileSync(new URL(`../../../native/crates/core/src/${file}`, import.meta.url), "utf8");

/** `NAME: u32 = 4;` or `Name = 4,` in the block that `opening` begins, names without their spelling. */
function numbersOf(text: string, opening: string): Record<string, number> {
  const start = text.indexOf(`${opening} {`);
  const block = text.slice(start, text.indexOf("\n}", start));
  const found = block.matchAll(/(\w+)(?:: \w+)? = (\d+)[;,]/g);
  return Object.fromEntries(Array.from(found, ([, name, value]) => [plain(name!), Number(value)]));
}

const plain = (name: string) => name.replaceAll(/[-_]/g, "").toLowerCase();

it("numbers needs and uses as the Rust side does", () => {
  const all = Object.entries({ ...NEED, ...USE }).map(([name, bit]) => [plain(name), bit]);
  expect(numbersOf(rust("names.rs"), "pub mod uses")).toEqual(Object.fromEntries(all));
});

it("numbers reasons as the Rust side does, as far as a router gives them", () => {
  const places = Object.fromEntries(REASONS.map((name, place) => [plain(name), place]));
  const reasons = numbersOf(rust("pick.rs"), "pub enum Reason");
  expect(places).toMatchObject(reasons);
  expect(Object.keys(reasons)).toHaveLength(10);
});

it("lays out the rows of a table, and limits a scan, as the Rust side does", () => {
  const table = rust("table.rs");
  const sizes = { HEADER_WORDS, MODEL_WORDS, CLASS_WORDS, CELL_WORDS, CANDIDATE_WORDS, CANDIDATE_NUMBERS };
  for (const [name, size] of Object.entries(sizes)) expect(table).toContain(`const ${name}: usize = ${size};`);
  expect(rust("scan.rs")).toContain(`pub const PIECES_MAX: usize = ${PIECES_MAX};`);
  expect(rust("json.rs")).toContain(`pub const DEPTH_MAX: usize = ${DEPTH_MAX};`);
});

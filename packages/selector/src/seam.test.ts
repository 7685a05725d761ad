import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { NATIVE_UNUSUAL } from "./create-router.ts";
import { USE } from "./facts.ts";
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
  STATE,
  TRIED_MAX,
} from "./router.ts";
import {
  CANDIDATE_NUMBERS,
  CANDIDATE_WORDS,
  CELL_WORDS,
  CLASS_WORDS,
  HEADER_WORDS,
  MODEL_WORDS,
} from "./table-columns.ts";

const rust = (file: string) =>
  readFileSync(new URL(`../../../native/crates/core/src/${file}`, import.meta.url), "utf8");
const seam = rust("seam.rs");

/** Names and numbers of `pub mod NAME { pub const … }`. */
function constants(text: string, module: string): Record<string, number> {
  const block = new RegExp(`pub mod ${module} \\{\\n(.*?)\\n\\}`, "s").exec(text)?.[1] ?? "";
  const found = block.matchAll(/pub const (\w+): \w+ = (.+);/g);
  return Object.fromEntries(Array.from(found, ([, name, value]) => [name!, numberIn(value!)]));
}

/** Names and numbers of `pub enum NAME { A = 0, … }`. */
function variants(text: string, name: string): Record<string, number> {
  const block = new RegExp(`pub enum ${name} \\{\\n(.*?)\\n\\}`, "s").exec(text)?.[1] ?? "";
  return Object.fromEntries(Array.from(block.matchAll(/(\w+) = (\d+),/g), ([, each, value]) => [each!, Number(value)]));
}

function numberIn(text: string): number {
  const shift = /^1 << (\d+)$/.exec(text);
  if (shift !== null) return 2 ** Number(shift[1]);
  if (text === "TRIED + super::TRIED_MAX") return HEAD.tried + TRIED_MAX;
  return Number(text.replaceAll("_", ""));
}

/** `keyHash2` as Rust's constants are written, `KEY_HASH_2`. */
const shouted = (name: string) => name.replace(/([A-Z]|\d+)/g, "_$1").toUpperCase();
const allShouted = (table: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [shouted(name), value]));
/** `fail-open` or `prompt_cache_key` as Rust's variants are written. */
const variant = (name: string) => name.replace(/(?:^|[-_])(\w)/g, (_, letter: string) => letter.toUpperCase());

describe("the numbers in native/crates/core", () => {
  it("are those of the words that cross", () => {
    expect(constants(seam, "head")).toEqual({ ...allShouted(HEAD), WORDS: HEAD_WORDS });
    expect(constants(seam, "out")).toEqual({ ...allShouted(OUT), WORDS: OUT_WORDS });
    expect(constants(seam, "path")).toEqual(allShouted(PATH));
    expect(constants(seam, "state")).toEqual(allShouted(STATE));
    expect(seam).toContain(`pub const TRIED_MAX: usize = ${TRIED_MAX};`);
    expect(seam).toContain("pub const NONE: u32 = u32::MAX;");
    expect(NO_ENGINE).toBe(0xffff_ffff);
  });

  it("are those of the bits of needs and uses", () => {
    expect(constants(rust("names.rs"), "uses")).toEqual(allShouted({ ...NEED, ...USE }));
  });

  it("are those of statuses, reasons and key sources, as far as Rust gives them", () => {
    const statuses = variants(seam, "Status");
    expect(statuses).toMatchObject({ AskTwin: NATIVE_UNUSUAL });
    delete statuses.AskTwin;
    const known = Object.entries(ROUTE_STATUS).map(([name, value]) => [variant(name), value]);
    expect(Object.fromEntries(known)).toMatchObject(statuses);
    const places = (names: readonly string[]) => Object.fromEntries(names.map((name, place) => [variant(name), place]));
    expect(places(REASONS)).toMatchObject(variants(rust("pick.rs"), "Reason"));
    expect(places(KEY_SOURCES)).toMatchObject(variants(seam, "KeySource"));
    for (const [file, name] of [
      ["seam.rs", "Status"],
      ["pick.rs", "Reason"],
      ["seam.rs", "KeySource"],
    ] as const)
      expect(Object.keys(variants(rust(file), name)).length).toBeGreaterThan(4);
  });

  it("are those of the rows of a table", () => {
    const table = rust("table.rs");
    const sizes = { HEADER_WORDS, MODEL_WORDS, CLASS_WORDS, CELL_WORDS, CANDIDATE_WORDS, CANDIDATE_NUMBERS };
    for (const [name, size] of Object.entries(sizes)) expect(table).toContain(`const ${name}: usize = ${size};`);
  });
});

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./repository.ts";

/** The page on known faults names, for each fault, the test files whose titles begin with its number. */

const page = readFileSync(join(root, "docs", "faults.md"), "utf8");

/** By number: what the page says is held by these files, and its words where there are none. */
const onPage = new Map(
  [...page.matchAll(/^\| (B\d{3}) *\|([^|]*)\|([^|]*)\|$/gm)].map(([, id = "", , cell = ""]) => {
    const files = /^ *((?:`[^`]+`(?: · )?)*)/.exec(cell)?.[1] ?? "";
    return [id, { files: [...files.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name), cell: cell.trim() }] as const;
  }),
);

/** By number: files that have a test of that title, in the page's short form. */
function inTitles(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const path of globSync(["packages/*/src/**/*.test.ts", "test/src/**/*.test.ts"], { cwd: root }).sort()) {
    const text = readFileSync(join(root, path), "utf8");
    const name = path
      .replace(/^packages\//, "")
      .replace("/src/", "/")
      .replace(/\.test\.ts$/, "");
    for (const [, ids = ""] of text.matchAll(/["`](B\d{3}(?:, B\d{3})*): /g))
      for (const id of ids.split(", ")) found.set(id, [...new Set([...(found.get(id) ?? []), name])]);
  }
  return found;
}

describe("the page on known faults", () => {
  it("has each of the 123 once", () => {
    expect(page.match(/^\| B\d{3} /gm)).toHaveLength(123);
    expect(onPage.size).toBe(123);
  });

  it("names every test that is titled by a fault, and none that is not there", () => {
    const listed = new Map(
      [...onPage].filter(([, { files }]) => files.length > 0).map(([id, { files }]) => [id, files]),
    );
    const sorted = (map: ReadonlyMap<string, readonly string[]>) =>
      [...map].map(([id, files]) => `${id} ${[...files].sort().join(" ")}`).sort();
    expect(sorted(listed)).toEqual(sorted(inTitles()));
  });

  it("says of each other fault why it does not apply, or what it waits for", () => {
    for (const [id, { files, cell }] of onPage)
      if (files.length === 0) expect(`${id} ${cell}`).toMatch(/^B\d{3} (Does not apply|Waits for).{20,}\.$/);
  });
});

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { root } from "./repository.ts";

/** The last line of a run, by real runs of small suites. They lie in this repository, in a folder that git ignores, so that they find vitest. */

let folder: string;
beforeEach(() => {
  const place = join(root, ".guidevane");
  mkdirSync(place, { recursive: true });
  folder = mkdtempSync(join(place, "closing-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const head = 'import { beforeAll, describe, expect, it } from "vitest";\n';

describe("the closing line", () => {
  it.each<[string, Record<string, string>, string, number]>([
    [
      "counts what passed, failed and was skipped, over files",
      {
        "a.test.ts": 'it("a", () => {}); it("b", () => expect(1).toBe(2)); it.skip("c", () => {});',
        "b.test.ts": 'it("d", () => {}); it.todo("e");',
      },
      "2 passed, 1 failed, 2 skipped",
      1,
    ],
    ["is all good when all is", { "a.test.ts": 'it("a", () => {});' }, "1 passed, 0 failed, 0 skipped", 0],
    [
      "counts a file that can't be loaded as one failure",
      { "a.test.ts": 'it("a", () => {});', "b.test.ts": 'throw new Error("no");' },
      "1 passed, 1 failed, 0 skipped",
      1,
    ],
    [
      "counts a hook that fails as one failure, its tests as skipped",
      { "a.test.ts": 'describe("x", () => { beforeAll(() => { throw new Error("no"); }); it("a", () => {}); });' },
      "0 passed, 1 failed, 1 skipped",
      1,
    ],
    [
      "counts an error outside any test as one failure",
      { "a.test.ts": 'it("a", () => { void Promise.reject(new Error("nobody waits")); });' },
      "1 passed, 1 failed, 0 skipped",
      1,
    ],
    ["is there when no test was found", {}, "0 passed, 0 failed, 0 skipped", 1],
  ])("%s", (_what, files, line, code) => {
    for (const [name, body] of Object.entries(files)) writeFileSync(join(folder, name), head + body);
    const reporter = fileURLToPath(new URL("./closing-line.ts", import.meta.url));
    const config = `export default { test: { include: ["*.test.ts"], reporters: ["default", ${JSON.stringify(reporter)}] } };`;
    writeFileSync(join(folder, "vitest.config.mjs"), config);
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const { stdout, status } = spawnSync(process.execPath, [vitest, "run", "--root", folder], { encoding: "utf8" });
    expect(stdout.trimEnd().split("\n").at(-1)).toBe(line);
    expect(status).toBe(code);
  });
});

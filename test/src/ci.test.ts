import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "./repository.ts";

/** `.ci/run` with stand-ins for the programs that it calls: what it makes of their ends. */

const folder = mkdtempSync(join(tmpdir(), "guidevane-ci-"));
const programs: Readonly<Record<string, string>> = {
  // The pass with the addon prints what FIRST says, the one without what SECOND says; every other script ends with REST.
  npm: `case "$*" in
    test) if [ "\${GUIDEVANE_NATIVE:-}" = off ]; then echo "$SECOND"; exit "\${SECOND_ENDS:-0}"; fi
          echo "$FIRST"; exit "\${FIRST_ENDS:-0}" ;;
    *) exit "\${REST:-0}" ;;
  esac`,
  cargo: `[ "$1" != test ] || { echo "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured"
    echo "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured"; exit "\${CRATES:-0}"; }`,
  npx: `exit "\${REST:-0}"`,
  python3: "exit 1",
  "apt-get": "exit 1",
  git: "exit 1",
};

beforeAll(() => {
  mkdirSync(join(folder, ".ci"));
  mkdirSync(join(folder, "bin"));
  cpSync(join(root, ".ci/run"), join(folder, ".ci/run"));
  for (const [name, body] of Object.entries(programs)) {
    const path = join(folder, "bin", name);
    writeFileSync(path, `#!/bin/bash\n${body}\n`);
    chmodSync(path, 0o755);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(process.platform === "win32")("the CI run (not on Windows: it is a bash script)", () => {
  const good = { FIRST: "10 passed, 0 failed, 1 skipped", SECOND: "9 passed, 0 failed, 2 skipped" };

  it("sums both passes and the crates in its last line", async () => {
    expect(await run(good)).toEqual({ code: 0, last: "35 passed, 0 failed, 5 skipped" });
  });

  it.each<[string, Record<string, string>, string]>([
    ["a pass that ran no test", { FIRST: "0 passed, 0 failed, 3 skipped" }, "25 passed, 1 failed, 7 skipped"],
    ["a pass without a closing line", { SECOND: "9 passed" }, "26 passed, 1 failed, 3 skipped"],
    ["a failing test", { SECOND: "8 passed, 1 failed, 2 skipped", SECOND_ENDS: "1" }, "34 passed, 1 failed, 5 skipped"],
    ["a pass that ends badly although no test failed", { FIRST_ENDS: "1" }, "35 passed, 1 failed, 5 skipped"],
    ["crates' tests that fail, one for each workspace", { CRATES: "101" }, "35 passed, 2 failed, 5 skipped"],
    ["every other check that fails, one each", { REST: "1" }, "35 passed, 6 failed, 5 skipped"],
  ])("fails for %s, and says so in the last line", async (_what, change, last) => {
    expect(await run({ ...good, ...change })).toEqual({ code: 1, last });
  });
});

function run(env: Readonly<Record<string, string>>): Promise<{ code: number; last: string | undefined }> {
  const path = [join(folder, "bin"), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
  return new Promise((resolve) => {
    execFile("bash", [join(folder, ".ci/run")], { env: { ...env, PATH: path } }, (error, stdout) => {
      resolve({ code: error === null ? 0 : Number(error.code), last: stdout.trimEnd().split("\n").at(-1) });
    });
  });
}

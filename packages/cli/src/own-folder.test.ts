import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { makeOwnFolder } from "./own-folder.ts";
import { DEFAULT_FLEET } from "./up-fleet.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "guidevane-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = join(folder, "file");
writeFileSync(file, "");

function run(...args: string[]) {
  const { status, stderr } = spawnSync(process.execPath, ["--conditions=@guidevane/source", MAIN, ...args], {
    encoding: "utf8",
    timeout: 20_000,
  });
  return { status, stderr };
}

const gateway = ["gateway", "--cluster", "a", "--fleet", DEFAULT_FLEET, "--control", "http://127.0.0.1:1"];
const free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

describe("the folder that a program keeps its files in", () => {
  it("is made, with those above it", () => {
    const deep = join(folder, "a", "b");
    makeOwnFolder("--state", deep);
    expect(statSync(deep).isDirectory()).toBe(true);
  });

  it.each([
    [file, "a file is in its place"],
    [join(file, "under"), "a file is in its place"],
    ["/proc/guidevane/state", "the system makes no folder there"],
  ])("is named where it can't be: %s", (path, why) => {
    expect(() => makeOwnFolder("--state", path)).toThrow(
      expect.objectContaining({
        code: "bad_usage",
        message: `--state: must be a folder that can be written to; ${why} (got ${JSON.stringify(path)})`,
      }),
    );
  });

  it.each([
    ["gateway --state", [...gateway, ...free, "--state", "/proc/guidevane/state"]],
    ["control --store", ["control", "--fleet", DEFAULT_FLEET, "--admin", "127.0.0.1:0", "--store", file]],
  ])("ends the command with 2 where it can't be: %s", (_flag, args) => {
    const { status, stderr } = run(...args);
    expect([status, stderr]).toEqual([2, expect.stringContaining("must be a folder that can be written to")]);
  });
});

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeFolders } from "./files.ts";

const folder = mkdtempSync(join(tmpdir(), "guidevane-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a folder", () => {
  it("is made with those above it, and the topmost new one is told", () => {
    const deep = join(folder, "a", "b", "c");
    expect(makeFolders(deep)).toBe(join(folder, "a"));
    expect(existsSync(deep)).toBe(true);
    expect(makeFolders(deep)).toBeNull();
  });

  it("can't be made in the place of a file, or under one", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => makeFolders(file)).toThrow(/EEXIST/);
    expect(() => makeFolders(join(file, "under"))).toThrow(/ENOTDIR/);
  });

  it.skipIf(!existsSync("/proc/self"))("that the system refuses is refused at once", () => {
    expect(() => makeFolders("/proc/guidevane/store")).toThrow(/ENOENT|EACCES|EPERM/);
  });
});

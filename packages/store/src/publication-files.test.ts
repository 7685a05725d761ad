import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "@guidevane/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listVersions, prune, readPublication, writePublication } from "./publication-files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "guidevane-publications-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const publication = (version: number, note = "") => ({ version, epoch: 1, clusters: new Map(), problem: { note } });

it("keeps a publication whose link was made though its answer was lost", async () => {
  await writePublication(directory, publication(1, "mine"), "a");
  // The same writer's call, repeated.
  await writePublication(directory, publication(1, "mine"), "a");
  expect((await readPublication(directory, 1)).problem).toEqual({ note: "mine" });
});

it("is a conflict for a writer whose version, or a later one, stands", async () => {
  await writePublication(directory, publication(1, "first"), "a");
  await expect(writePublication(directory, publication(1, "second"), "b")).rejects.toMatchObject({
    code: "store_conflict",
  });
  expect((await readPublication(directory, 1)).problem).toEqual({ note: "first" });
});

it("prunes old versions and what killed writers left of them, but not what another writer may still fill", async () => {
  await writePublication(directory, publication(1), "a");
  await writePublication(directory, publication(2), "a");
  mkdirSync(join(directory, "1-dead"));
  mkdirSync(join(directory, "2-beef"));
  await prune(directory, { versions: 1, bytes: 1e6 });
  expect(readdirSync(directory).sort()).toEqual(["000000000002.json", "2-a", "2-beef"]);
  expect((await readPublication(directory, 2)).version).toBe(2);
});

it("keeps fewer versions where they take more bytes than allowed, but always one to roll back to", async () => {
  // Text that does not compress, so that each version takes 20 to 40 KB.
  const random = seededRandom(1);
  const note = Array.from({ length: 20_000 }, () => String.fromCharCode(33 + Math.floor(94 * random()))).join("");
  for (let version = 1; version <= 6; version++) await writePublication(directory, publication(version, note), "a");
  await prune(directory, { versions: 200, bytes: 85_000 });
  const some = await listVersions(directory);
  expect(some[0]).toBe(6);
  expect(some.length).toBeGreaterThanOrEqual(2);
  expect(some.length).toBeLessThan(6);
  expect(readdirSync(directory)).toHaveLength(2 * some.length);
  await prune(directory, { versions: 200, bytes: 1 });
  expect(await listVersions(directory)).toEqual([6, 5]);
  expect((await readPublication(directory, 5)).version).toBe(5);
});

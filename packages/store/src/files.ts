import { createHash } from "node:crypto";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** Files that survive the death of the process, or of the machine, at any moment. */

/** Makes a folder and flushes its entry, so that what is put in it later can't vanish with it. */
export async function makeFolder(path: string): Promise<void> {
  const first = makeFolders(path);
  if (first !== null) await syncFolder(dirname(first));
}

/**
 * Makes a folder and those above it that are not there. By hand, since node's own way never ends where the system says that a
 * folder's parent is missing although it is there, as it does under `/proc`.
 *
 * @returns the topmost folder that was made; null = all were there
 * @throws what making a folder fails on
 */
export function makeFolders(path: string): string | null {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const folder of missing) makeOne(folder);
  // What is there and is no folder is a fault of its own.
  if (missing.length === 0 && !statSync(path).isDirectory()) mkdirSync(path);
  return missing[0] ?? null;
}

function makeOne(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process was quicker.
    if (!isCode(error, "EEXIST")) throw error;
  }
}

/** Writes a new file and flushes it to the disk. The folder's entry is not flushed: see `syncFolder`. */
export async function writeSynced(path: string, bytes: Uint8Array | string): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Replaces a file whole: a reader sees the old bytes or the new ones, never a part. */
export async function replaceFile(path: string, bytes: Uint8Array | string): Promise<void> {
  const temporary = join(dirname(path), `.${process.pid}-${nextNumber++}.tmp`);
  await writeSynced(temporary, bytes);
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

let nextNumber = 0;

/** Flushes a folder's entries. Windows can't open a folder for this, and journals its entries itself. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The file's bytes, or null where there is none. Other failures are thrown. */
export async function readIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isCode(error, "ENOENT")) return null;
    throw error;
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** JSON under its own checksum: `{ "sha256", "body" }`. */
export function seal(body: unknown): string {
  return `${JSON.stringify({ sha256: sha256(JSON.stringify(body)), body })}\n`;
}

/** The body of sealed JSON; undefined where it is not JSON or its checksum differs. */
export function unseal(text: string): unknown {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof data !== "object" || data === null || !("body" in data) || !("sha256" in data)) return undefined;
  return sha256(JSON.stringify(data.body)) === data.sha256 ? data.body : undefined;
}

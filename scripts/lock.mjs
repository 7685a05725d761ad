import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const POLL_MS = 100;
const POLLS_BEFORE_TELLING = 10;
const BEAT_MS = 1000;
/** A holder that has not touched its lock for this long is gone: ten beats, so that a busy machine is not mistaken. */
const STALE_MS = 10_000;

/** Runs `task` while no other process holds `path`; waits for its turn. */
export async function withLock(path, task) {
  mkdirSync(dirname(path), { recursive: true });
  for (let polls = 0; !tryLock(path); polls++) {
    if (polls === POLLS_BEFORE_TELLING) console.error("waiting for another build of this folder to end");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const beat = setInterval(() => isOurs(path) && utimesSync(path, new Date(), new Date()), BEAT_MS);
  try {
    return await task();
  } finally {
    clearInterval(beat);
    // A process that was asleep for long may have lost its lock; what is there now is another's.
    if (isOurs(path)) rmSync(path, { force: true });
  }
}

function isOurs(path) {
  return read(path)?.pid === process.pid;
}

function tryLock(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  const holder = read(path);
  if (holder !== undefined && isGone(holder)) {
    // Renaming is what decides between two that both found it stale: the second finds nothing to rename.
    const aside = `${path}.${process.pid}`;
    try {
      renameSync(path, aside);
      rmSync(aside, { force: true });
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  return false;
}

function read(path) {
  try {
    return { pid: Number(readFileSync(path, "utf8")), ageMs: Date.now() - statSync(path).mtimeMs };
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

function isGone({ pid, ageMs }) {
  if (ageMs > STALE_MS) return true;
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

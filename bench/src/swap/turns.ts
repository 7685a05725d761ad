import { openSync, readSync } from "node:fs";

/** Tells the longest turn of a thread's event loop since the last look, ms, and begins anew. */
export type LookAtTurns = () => number;

/**
 * Keeps this thread's event loop turning and times each turn, less the time that the thread waited for a core: what other
 * processes take from it on a busy machine is no pause of ours. (A thread's CPU time would say the same, but the system
 * brings it up to date every 4 ms only.)
 */
export function watchTurns(): LookAtTurns {
  const waited = openWaits();
  let longestMs = 0;
  let lastMs = performance.now();
  let lastWaitedMs = waited();
  const turn = (): void => {
    const nowMs = performance.now();
    const nowWaitedMs = waited();
    longestMs = Math.max(longestMs, nowMs - lastMs - (nowWaitedMs - lastWaitedMs));
    // What was just read took time as well.
    lastMs = performance.now();
    lastWaitedMs = nowWaitedMs;
    setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    const found = longestMs;
    longestMs = 0;
    return found;
  };
}

/** How long this thread has waited for a core, ms; 0 where the system does not say. */
function openWaits(): () => number {
  let file: number;
  try {
    file = openSync("/proc/thread-self/schedstat", "r");
  } catch {
    return () => 0;
  }
  const bytes = Buffer.alloc(64);
  return () => {
    readSync(file, bytes, 0, bytes.length, 0);
    return secondNumber(bytes) / 1e6;
  };
}

/** Of numbers in decimal with a space between. By hand: rubbish made in every turn would be collected in some. */
function secondNumber(bytes: Uint8Array): number {
  let at = bytes.indexOf(SPACE) + 1;
  let value = 0;
  for (; bytes[at]! >= ZERO; at++) value = value * 10 + bytes[at]! - ZERO;
  return value;
}

const SPACE = 32;
const ZERO = 48;

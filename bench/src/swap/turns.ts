import { openSync, readSync } from "node:fs";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";

/** A turn of a thread's event loop. */
export interface Turn {
  readonly ms: number;
  /** Of it, what the collector stopped the thread for. */
  readonly gcMs: number;
  /** The kind of collection that took the most of that. */
  readonly gcKind: string;
}

/** Tells the longest turn since the last look, and begins anew. */
export type LookAtTurns = () => Turn;

/**
 * Keeps this thread's event loop turning and times each turn, less the time that the thread waited for a core: what other
 * processes take from it on a busy machine is no pause of ours. (A thread's CPU time would say the same, but the system
 * brings it up to date every 4 ms only.)
 */
export function watchTurns(): LookAtTurns {
  const waited = openWaits();
  const collected = watchCollector();
  let longestMs = 0;
  let longestEndMs = 0;
  let lastMs = performance.now();
  let lastWaitedMs = waited();
  const turn = (): void => {
    const nowMs = performance.now();
    const nowWaitedMs = waited();
    const ms = nowMs - lastMs - (nowWaitedMs - lastWaitedMs);
    if (ms > longestMs) {
      longestMs = ms;
      longestEndMs = nowMs;
    }
    // What was just read took time as well.
    lastMs = performance.now();
    lastWaitedMs = nowWaitedMs;
    setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    const found = { ms: longestMs, ...collected(longestEndMs - longestMs, longestEndMs) };
    longestMs = 0;
    return found;
  };
}

/** Tells how long of a span the collector stopped this thread, ms, and forgets what it did so far. */
function watchCollector(): (fromMs: number, toMs: number) => Pick<Turn, "gcMs" | "gcKind"> {
  let seen: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => {
    seen.push(...list.getEntries());
  });
  observer.observe({ entryTypes: ["gc"] });
  return (fromMs, toMs) => {
    const all = [...seen, ...observer.takeRecords()];
    seen = [];
    const within = ({ startTime, duration }: PerformanceEntry): number =>
      Math.max(0, Math.min(toMs, startTime + duration) - Math.max(fromMs, startTime));
    const kinds = all.map((entry) => ({ kind: kindOf(entry), ms: within(entry) }));
    const most = kinds.reduce((found, each) => (each.ms > found.ms ? each : found), { kind: "none", ms: 0 });
    return { gcMs: kinds.reduce((sum, { ms }) => sum + ms, 0), gcKind: most.kind };
  };
}

function kindOf(entry: PerformanceEntry): string {
  // What the types leave out: an entry of the collector tells its kind.
  switch ((entry as PerformanceEntry & { readonly detail: { readonly kind: number } }).detail.kind) {
    case constants.NODE_PERFORMANCE_GC_MINOR:
      return "young";
    case constants.NODE_PERFORMANCE_GC_MAJOR:
      return "full";
    case constants.NODE_PERFORMANCE_GC_INCREMENTAL:
      return "marking";
    default:
      return "weak";
  }
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

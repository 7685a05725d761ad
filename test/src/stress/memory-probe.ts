import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";

/**
 * Preloaded into every thread of a program under stress (`--import`, with `--expose-gc`): once a minute the thread collects
 * all its garbage and appends what is left to the file that `GUIDEVANE_STRESS_MEMORY` names.
 */

const EVERY_MS = 60_000;

/** What one thread holds after a full collection. */
export interface HeapLine {
  readonly pid: number;
  readonly thread: number;
  /** The wall clock's, ms. */
  readonly atMs: number;
  readonly heapMb: number;
  /** Outside the heap and known to it: buffers and the addon's. Memory that threads share counts in each. */
  readonly externalMb: number;
}

const file = process.env.GUIDEVANE_STRESS_MEMORY;
if (file !== undefined && globalThis.gc !== undefined) {
  setInterval(() => {
    globalThis.gc!();
    const { heapUsed, external } = process.memoryUsage();
    const mb = (bytes: number): number => bytes / 2 ** 20;
    const figures = { heapMb: mb(heapUsed), externalMb: mb(external) };
    const line: HeapLine = { pid: process.pid, thread: threadId, atMs: Date.now(), ...figures };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  }, EVERY_MS).unref();
}

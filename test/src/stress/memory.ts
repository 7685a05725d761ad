import { existsSync, readFileSync } from "node:fs";
import type { HeapLine } from "./memory-probe.ts";

/** Memory of the processes that ran under one name, one after the other. */
export interface MemoryLine {
  readonly name: string;
  readonly lives: number;
  readonly threads: number;
  /** What the system counts for the process (RSS), all threads together. */
  readonly rss: MemoryTrend;
  /** Heap and buffers of all threads together, after a full collection. */
  readonly held: MemoryTrend;
}

/** Medians over the run's second and last quarter (the first is warm-up), and the slope over its second half. */
export interface MemoryTrend {
  /** null = nothing was read then. */
  readonly beforeMb: number | null;
  readonly afterMb: number | null;
  readonly mostMb: number | null;
  /** Of minute minima, by Theil and Sen; null where one process did not live through the whole second half. */
  readonly slopeMbPerHour: number | null;
}

/** What a process held at a time of the run. */
export interface Point {
  readonly pid: number;
  readonly atMs: number;
  readonly mb: number;
}

const MINUTE_MS = 60_000;

/** Collects what processes hold over a run, from the system and from what they wrote of themselves. */
export class MemoryWatch {
  readonly #heapFile: string;
  readonly #wallFromMs = Date.now();
  readonly #fromMs = performance.now();
  readonly #rss = new Map<string, Point[]>();
  readonly #names = new Map<number, string>();
  readonly #threads = new Map<string, number>();

  /** @param heapFile what memory-probe.ts writes to */
  constructor(heapFile: string) {
    this.#heapFile = heapFile;
  }

  sample(name: string, pid: number): void {
    let status: string;
    try {
      status = readFileSync(`/proc/${pid}/status`, "latin1");
    } catch {
      // It was killed since it was listed.
      return;
    }
    const field = (key: string): number =>
      Number(new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
    // One that has ended and was not waited for yet has none.
    if (Number.isNaN(field("VmRSS"))) return;
    if (!this.#rss.has(name)) this.#rss.set(name, []);
    this.#rss.get(name)!.push({ pid, atMs: performance.now() - this.#fromMs, mb: field("VmRSS") / 1024 });
    this.#names.set(pid, name);
    this.#threads.set(name, field("Threads"));
  }

  lines(): MemoryLine[] {
    const runMs = performance.now() - this.#fromMs;
    const held = this.#held();
    return [...this.#rss].map(([name, points]) => ({
      name,
      lives: new Set(points.map(({ pid }) => pid)).size,
      threads: this.#threads.get(name)!,
      rss: trend(points, runMs),
      held: trend(held.get(name) ?? [], runMs),
    }));
  }

  /** All threads of a process together, of minutes in which each of them was read. */
  #held(): Map<string, Point[]> {
    const lines = existsSync(this.#heapFile) ? readFileSync(this.#heapFile, "utf8").trim().split("\n") : [];
    const minutes = new Map<string, Map<number, HeapLine>>();
    const threads = new Map<number, Set<number>>();
    for (const text of lines.filter((line) => line !== "")) {
      const line = JSON.parse(text) as HeapLine;
      const minute = `${line.pid} ${Math.floor((line.atMs - this.#wallFromMs) / MINUTE_MS)}`;
      // Timers drift: now and then a thread was read twice in a minute.
      minutes.set(minute, (minutes.get(minute) ?? new Map()).set(line.thread, line));
      threads.set(line.pid, (threads.get(line.pid) ?? new Set()).add(line.thread));
    }
    const held = new Map<string, Point[]>();
    for (const byThread of minutes.values()) {
      const read = [...byThread.values()];
      const { pid, atMs } = read[0]!;
      const name = this.#names.get(pid);
      if (name === undefined || read.length < threads.get(pid)!.size) continue;
      const mb = read.reduce((sum, { heapMb, externalMb }) => sum + heapMb + externalMb, 0);
      held.set(name, [...(held.get(name) ?? []), { pid, atMs: atMs - this.#wallFromMs, mb }]);
    }
    return held;
  }
}

export function trend(points: readonly Point[], runMs: number): MemoryTrend {
  const within = (from: number, to: number): Point[] =>
    points.filter(({ atMs }) => atMs >= from * runMs && atMs < to * runMs);
  const late = within(0.5, 1);
  const isOneLife = new Set(late.map(({ pid }) => pid)).size === 1;
  return {
    beforeMb: median(within(0.25, 0.5).map(({ mb }) => mb)),
    afterMb: median(within(0.75, 1).map(({ mb }) => mb)),
    mostMb: points.length === 0 ? null : Math.max(...points.map(({ mb }) => mb)),
    slopeMbPerHour: isOneLife ? theilSen(minuteMinima(late)) : null,
  };
}

/** The least of each minute: what a collector has not yet taken away is no growth. */
function minuteMinima(points: readonly Point[]): Point[] {
  const least = new Map<number, Point>();
  for (const point of points) {
    const minute = Math.floor(point.atMs / MINUTE_MS);
    const known = least.get(minute);
    if (known === undefined || point.mb < known.mb) least.set(minute, point);
  }
  return [...least.values()];
}

/** The median slope of all pairs of points, MB/h: a few that lie far off move it little. */
function theilSen(points: readonly Point[]): number | null {
  const slopes: number[] = [];
  for (const [at, one] of points.entries())
    for (const other of points.slice(at + 1))
      slopes.push(((other.mb - one.mb) * 60 * MINUTE_MS) / (other.atMs - one.atMs));
  return median(slopes);
}

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

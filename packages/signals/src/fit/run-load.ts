import type { LoggedRun } from "./request-log.ts";

/** A stretch of a run under one load. */
export interface Stretch {
  readonly run: LoggedRun;
  /** Of the run: its requests by their start. */
  readonly order: Uint32Array;
  /** Places, by start, of the requests that began in it. */
  readonly from: number;
  readonly to: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** Requests that ended in it. */
  readonly ended: number;
  /** Mean requests in flight: overlap. */
  readonly inFlight: number;
}

export interface RunLoad {
  readonly loop: "open" | "closed";
  /** Stretches of one load each: all of a steady run together, the windows of another one by one. */
  readonly steady: readonly (readonly Stretch[])[];
  /** Requests that belong to none: warm-up, drain, and load that was changing. */
  readonly outside: number;
  /** Of a closed loop: loads that stood still among those outside, for less than a window. */
  readonly short: readonly Stretch[];
}

/**
 * A window is so many times the time that nine of ten requests take at most: long enough that what is in flight in it is what
 * its requests met, short enough that a stage of a sweep has several.
 */
const WINDOW_E2E = 2;
/** Fewest requests of a window on average. Random arrivals of 100 vary by 10 %. */
const WINDOW_REQUESTS = 100;
/** Fewest windows, beside the first and the last, that a run is judged by; a shorter one counts as one load. */
const WINDOWS_MIN = 3;
/** Of a run whose windows, but the tenth at either end, differ by no more than this part, the load is one. */
const SAME_LOAD = 0.25;
/** Of the halves of a window: one that a change of stage cuts off at a tenth is none. */
const STEADY = 0.1;
/** Nine of ten counts of random arrivals lie within so many times their square root of the mean. */
const NOISE = 1.64;

/**
 * Finds where a run's load was steady. The first window is warm-up (a closed loop begins with all its prompts at once), what
 * comes after the last start is drain. A run whose windows all have one load is steady as a whole; of another, windows
 * are whose halves have one load.
 *
 * @param stated how the load was made; inferred where null
 */
export function loadOfRun(run: LoggedRun, stated: "open" | "closed" | null): RunLoad {
  const order = byStart(run);
  const { size } = run;
  const startMs = filled(size, (at) => run.startMs(order[at]!));
  const e2eMs = filled(size, (at) => run.e2eMs(order[at]!));
  const endMs = startMs.map((start, at) => start + e2eMs[at]!).sort();
  e2eMs.sort();
  const [beginMs, lastMs] = [startMs[0]!, startMs[size - 1]!];
  const loop = stated ?? (isClosed(startMs, endMs) ? "closed" : "open");
  const inSystem = timeInSystem(startMs, endMs);
  const stretch = (fromMs: number, toMs: number): Stretch => ({
    run,
    order,
    from: firstNotBefore(startMs, fromMs),
    to: firstNotBefore(startMs, toMs),
    fromMs,
    toMs,
    ended: firstNotBefore(endMs, toMs) - firstNotBefore(endMs, fromMs),
    inFlight: (inSystem(toMs) - inSystem(fromMs)) / (toMs - fromMs),
  });
  const done = (steady: readonly (readonly Stretch[])[]): RunLoad => ({
    loop,
    steady,
    outside: size - steady.flat().reduce((total, { from, to }) => total + to - from, 0),
    short: [],
  });

  const windowMs = Math.max(
    WINDOW_E2E * e2eMs[Math.floor(0.9 * (size - 1))]!,
    (WINDOW_REQUESTS * busyTime(startMs, endMs)) / size,
  );
  const windows = windowsOf(startMs, beginMs + windowMs, lastMs, windowMs).map(([from, to]) => stretch(from, to));
  if (windows.length < WINDOWS_MIN) {
    const warmMs = beginMs + e2eMs[size >> 1]!;
    return done(lastMs > warmMs ? [[stretch(warmMs, lastMs)]] : []);
  }
  const load = ({ from, to, inFlight }: Stretch): number => (loop === "closed" ? inFlight : to - from);
  const differ = (low: number, high: number, part: number, noise: number): boolean =>
    high - low > (part * (low + high)) / 2 + (loop === "closed" ? 0 : noise);
  const loads = windows.map(load).sort((a, b) => a - b);
  const at = (part: number): number => loads[Math.round(part * (loads.length - 1))]!;
  if (!differ(at(0.1), at(0.9), SAME_LOAD, 2 * NOISE * Math.sqrt(at(0.5)))) return done([windows]);
  const steady = windows
    .filter(({ fromMs, toMs }) => {
      const halves = [stretch(fromMs, (fromMs + toMs) / 2), stretch((fromMs + toMs) / 2, toMs)].map(load);
      const [low, high] = [Math.min(...halves), Math.max(...halves)];
      return !differ(low, high, STEADY, 2 * NOISE * Math.sqrt(low + high));
    })
    .map((window) => [window]);
  if (loop === "open") return done(steady);
  const pieces = windowsOf(startMs, beginMs, lastMs, windowMs / PIECES).map(([from, to]) => stretch(from, to));
  return { ...done(steady), short: standing(pieces).filter((each) => !steady.some(([one]) => isLike(one!, each))) };

  /** Pieces in a row under one load, each row as one stretch. */
  function standing(all: readonly Stretch[]): Stretch[] {
    const rows: Stretch[][] = [];
    for (const piece of all) {
      const row = rows.at(-1);
      const before = row?.at(-1);
      if (before !== undefined && before.toMs >= piece.fromMs && isLike(before, piece)) row!.push(piece);
      else rows.push([piece]);
    }
    return rows.filter(({ length }) => length >= PIECES_MIN).map((row) => stretch(row[0]!.fromMs, row.at(-1)!.toMs));
  }
}

/** A window is cut in so many; so many in a row under one load show one that did not last for a window. */
const PIECES = 16;
const PIECES_MIN = 3;

/** Whether two stretches of a closed loop have one load. */
export function isLike(one: Pick<Stretch, "inFlight">, other: Pick<Stretch, "inFlight">): boolean {
  return Math.abs(one.inFlight - other.inFlight) <= (STEADY * (one.inFlight + other.inFlight)) / 2;
}

function byStart(run: LoggedRun): Uint32Array {
  const startMs = filled(run.size, (index) => run.startMs(index));
  const order = new Uint32Array(run.size);
  for (let index = 0; index < run.size; index++) order[index] = index;
  return order.sort((a, b) => startMs[a]! - startMs[b]!);
}

/** As `Float64Array.from`, which makes a list of all values first. */
function filled(size: number, of: (at: number) => number): Float64Array {
  const values = new Float64Array(size);
  for (let at = 0; at < size; at++) values[at] = of(at);
  return values;
}

/**
 * In a closed loop a request begins when another has ended; in an open one the two know nothing of each other. Closed where
 * most starts come within a quarter of the mean time between starts after an end: of random ones 22 % do.
 */
function isClosed(startMs: Float64Array, endMs: Float64Array): boolean {
  let follows = 0;
  let seen = 0;
  for (let at = NEIGHBOURS; at + NEIGHBOURS < startMs.length; at++) {
    const meanGapMs = (startMs[at + NEIGHBOURS]! - startMs[at - NEIGHBOURS]!) / (2 * NEIGHBOURS);
    const ended = firstNotBefore(endMs, startMs[at]! + TIE_MS) - 1;
    seen += 1;
    if (ended >= 0 && startMs[at]! - endMs[ended]! <= SOON * meanGapMs) follows += 1;
  }
  return seen > 0 && follows > 0.5 * seen;
}

const NEIGHBOURS = 10;
const SOON = 0.25;
/** Logs round their times, so an end may seem to come just after the start that it caused. */
const TIE_MS = 1;

/** Request-ms spent in the system until a time, of starts and ends in order. */
function timeInSystem(startMs: Float64Array, endMs: Float64Array): (atMs: number) => number {
  // Against the first start: sums of instants since 1970 would lose what matters.
  const zeroMs = startMs[0]!;
  const [starts, ends] = [startMs, endMs].map((instants) => {
    const sums = new Float64Array(instants.length + 1);
    for (const [at, ms] of instants.entries()) sums[at + 1] = sums[at]! + (ms - zeroMs);
    return sums;
  });
  return (atMs) => {
    const [started, ended] = [firstNotBefore(startMs, atMs), firstNotBefore(endMs, atMs)];
    return (atMs - zeroMs) * (started - ended) - (starts![started]! - ends![ended]!);
  };
}

/** Time in which anything was in flight. */
function busyTime(startMs: Float64Array, endMs: Float64Array): number {
  let busyMs = 0;
  let sinceMs = startMs[0]!;
  for (let at = 1; at <= startMs.length; at++) {
    // All that began before have ended: idle until the next start.
    if (at < startMs.length && endMs[at - 1]! >= startMs[at]!) continue;
    busyMs += endMs[at - 1]! - sinceMs;
    sinceMs = startMs[at] ?? 0;
  }
  return busyMs;
}

/** Windows of one length in which anything began, between two times. */
function windowsOf(startMs: Float64Array, fromMs: number, toMs: number, windowMs: number): [number, number][] {
  const windows: [number, number][] = [];
  let at = firstNotBefore(startMs, fromMs);
  while (at < startMs.length) {
    const begin = fromMs + windowMs * Math.floor((startMs[at]! - fromMs) / windowMs);
    // Rounding can put a start just before its window.
    const end = Math.max(begin + windowMs, startMs[at]! + windowMs * 1e-9);
    if (end > toMs) break;
    windows.push([begin, end]);
    at = firstNotBefore(startMs, end);
  }
  return windows;
}

/** Place of the first that is not less. */
function firstNotBefore(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The rate at which work arrives, from a sliding window whose length fits the load.
 *
 * A short window follows a change within seconds but is noisy: Poisson arrivals of 25/s give ±14 % over two seconds, and a
 * convex latency curve turns that noise into too high a mean. A long one is exact and late. So the window doubles from
 * `shortestMs` for as long as the time that it would add had the same rate as what it holds (within 3.5 standard
 * deviations), and as no shorter window contradicts the whole. At a steady load that is soon 64 s; after a step it is a
 * few seconds again.
 */
export class WorkRate {
  readonly #shortestMs: number;
  readonly #bucketMs: number;
  /** Of the first arrival: the idle time before it says nothing about the rate. */
  #startMs: number | null = null;
  /** Work, and the sum of its squares, that had arrived when each bucket began. */
  readonly #work: Float64Array = new Float64Array(BUCKETS);
  readonly #squares: Float64Array = new Float64Array(BUCKETS);
  #totalWork = 0;
  #totalSquares = 0;
  #bucket = 0;

  constructor(shortestMs: number) {
    this.#shortestMs = shortestMs;
    this.#bucketMs = shortestMs / BUCKETS_IN_SHORTEST;
  }

  /** Negative work takes back what a cancelled request will not use. */
  add(nowMs: number, work: number): void {
    this.#startMs ??= nowMs;
    this.#advance(nowMs);
    this.#totalWork += work;
    if (work > 0) this.#totalSquares += work * work;
  }

  /** Work units/s at `nowMs`, and the standard deviation of that estimate. */
  at(nowMs: number): { rateWps: number; deviationWps: number } {
    if (this.#startMs === null) return { rateWps: 0, deviationWps: 0 };
    this.#advance(nowMs);
    const windows: Window[] = [];
    for (let doublings = 0; doublings < WINDOWS; doublings++) {
      const window = this.#window(nowMs - this.#startMs, BUCKETS_IN_SHORTEST << doublings);
      const last = windows.at(-1);
      if (last !== undefined) {
        // Everything that ever arrived is in the window before.
        if (window.seconds <= last.seconds) break;
        const older = {
          seconds: window.seconds - last.seconds,
          work: window.work - last.work,
          squares: window.squares - last.squares,
        };
        if (differ(last, older, HALVES_DEVIATIONS)) break;
        if (windows.some((shorter) => differ(shorter, window, NESTED_DEVIATIONS))) break;
      }
      windows.push(window);
    }
    const { work, squares, seconds } = windows.at(-1)!;
    return { rateWps: Math.max(0, work / seconds), deviationWps: Math.sqrt(squares) / seconds };
  }

  #window(ageMs: number, buckets: number): Window {
    const first = Math.max(0, this.#bucket - buckets + 1);
    return {
      // A young window is taken as the shortest, else the second request would meet an endless rate.
      seconds: Math.max(ageMs - first * this.#bucketMs, this.#shortestMs) / 1000,
      work: this.#totalWork - this.#work[first % BUCKETS]!,
      squares: this.#totalSquares - this.#squares[first % BUCKETS]!,
    };
  }

  #advance(nowMs: number): void {
    const bucket = Math.floor((nowMs - (this.#startMs ?? nowMs)) / this.#bucketMs);
    for (let next = Math.max(this.#bucket + 1, bucket - BUCKETS + 1); next <= bucket; next++) {
      this.#work[next % BUCKETS] = this.#totalWork;
      this.#squares[next % BUCKETS] = this.#totalSquares;
    }
    this.#bucket = Math.max(this.#bucket, bucket);
  }
}

const BUCKETS_IN_SHORTEST = 20;
/** 2 s to 64 s by default: at 25 requests/s the longest is good to 2.5 %. */
const WINDOWS = 6;
const BUCKETS = (BUCKETS_IN_SHORTEST << (WINDOWS - 1)) + 1;
/** Beyond these, chance alone contradicts a steady load in less than one admission of a thousand. */
const HALVES_DEVIATIONS = 3.5;
/** Every pair of windows is compared, and they share most of what they hold. */
const NESTED_DEVIATIONS = 4;

interface Window {
  readonly seconds: number;
  readonly work: number;
  /** Sum of each request's work squared: the variance of `work` under Poisson arrivals. */
  readonly squares: number;
}

function differ(newer: Window, older: Window, deviations: number): boolean {
  // If both had one rate, this is the squared work per second of either.
  const squaresPerS = Math.max(newer.squares / newer.seconds, older.squares / older.seconds);
  const variance = squaresPerS * (1 / newer.seconds + 1 / older.seconds);
  return Math.abs(newer.work / newer.seconds - older.work / older.seconds) > deviations * Math.sqrt(variance);
}

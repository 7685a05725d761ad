/**
 * One gateway's arrivals of one class as three means of different memory, from counts in windows: what chance makes of each
 * is known, so that `LevelSum` can say which of them is the demand.
 */
export class Level {
  /** Memory of 5 s. */
  readonly fast = new Mean(FAST_MS);
  /** Memory of 30 s; of 10 s while the fast one stands below it beyond chance. */
  readonly recent = new Mean(RECENT_MS);
  /** Memory of 10 minutes, or of all since demand last changed. */
  readonly long = new Mean(LONG_MS);
  /** null before the first arrival. */
  #seenMs: number | null = null;

  add(count: number, windowMs: number): void {
    const rate = (count * 1000) / windowMs;
    if (this.#seenMs === null) {
      // Nothing has begun yet; and the window in which it does holds only a part of one, so that the next replaces it.
      // Counted in, they would keep a new gateway's demand some 10 % low for half a minute, and its engines over their load.
      if (count === 0) return;
      for (const mean of [this.fast, this.recent, this.long]) mean.begin(rate, 0);
      this.#seenMs = 0;
      return;
    }
    this.#seenMs += windowMs;
    this.fast.add(rate, windowMs);
    // What a spike of some seconds made the plan shed must not be shed for a minute after it.
    const falls = this.fast.perSecond < this.recent.perSecond - FALL_DEVIATIONS * this.#fastDeviation();
    this.recent.add(rate, windowMs, falls ? FALL_MS : RECENT_MS);
    this.long.add(rate, windowMs);
  }

  /** Demand jumped: what was before is forgotten, but for the last seconds. */
  jump(): void {
    for (const mean of [this.recent, this.long]) mean.begin(this.fast.perSecond, FAST_MS);
  }

  /** Demand changed: what was before the last half minute is forgotten. */
  restart(): void {
    this.long.begin(this.recent.perSecond, RECENT_MS);
  }

  /** Whole windows seen since the first arrival, ms. */
  get overMs(): number {
    return this.#seenMs ?? 0;
  }

  /** Of the fast mean by chance, were the recent one the true rate. */
  #fastDeviation(): number {
    return Math.sqrt(Math.max(this.recent.perSecond, LEAST_RPS) / this.fast.overS);
  }
}

/** An exponential mean that is a plain one while it is young: from zero it would need its memory to get there. */
class Mean {
  perSecond = 0;
  readonly #memoryMs: number;
  #overMs = 0;

  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs;
  }

  begin(rate: number, overMs: number): void {
    this.perSecond = rate;
    this.#overMs = overMs;
  }

  add(rate: number, windowMs: number, memoryMs = this.#memoryMs): void {
    this.#overMs += windowMs;
    this.perSecond += (rate - this.perSecond) * Math.max(1 - Math.exp(-windowMs / memoryMs), windowMs / this.#overMs);
  }

  /** The plain mean over so many seconds is as exact: an exponential one is as a plain one over twice its memory. */
  get overS(): number {
    return Math.min(Math.max(this.#overMs, 1000), 2 * this.#memoryMs) / 1000;
  }
}

const FAST_MS = 5000;
const RECENT_MS = 30_000;
const LONG_MS = 600_000;
const FALL_MS = 10_000;
const FALL_DEVIATIONS = 2;
/** Below this a single arrival would look like a change. */
export const LEAST_RPS = 0.1;

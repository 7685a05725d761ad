/** What one engine's observations add up to; older ones fade. */
interface Sums {
  count: number;
  /** Of |d|, d², and d times the one before, d being the distance from the engine's own mean. */
  off: number;
  squared: number;
  lagged: number;
}

interface Own extends Sums {
  mean: number;
  last: number | null;
}

/**
 * How noisy the pace of a class's healthy engines is: the spread b of one observation, and how much those that follow each
 * other resemble each other. A queue that formed by chance makes ten answers in a row late; they are one piece of news,
 * not ten. For a process with lag-one correlation r the mean of n observations is as good as that of
 *
 *     n·(1 − r)/(1 + r)
 *
 * independent ones (first-order autoregression; Bayley & Hammersley 1946), so each counts for that part of one. An engine
 * is judged by the noise of the others: its own falling ill must not look like noise.
 */
export class PaceNoise {
  readonly #engines = new Map<string, Own>();
  readonly #all: Sums = { count: 0, off: 0, squared: 0, lagged: 0 };

  add(engine: string, x: number): void {
    const own = this.#own(engine);
    const off = Math.min(OFF_MOST, Math.max(-OFF_MOST, x - own.mean));
    own.mean += MEAN_GAIN * off;
    const all = this.#all;
    const count = fading(1, own.count);
    const distance = fading(Math.abs(off), own.off);
    const squared = fading(off * off, own.squared);
    const lagged = fading(off * (own.last ?? 0), own.lagged);
    own.count += count;
    own.off += distance;
    own.squared += squared;
    own.lagged += lagged;
    all.count += count;
    all.off += distance;
    all.squared += squared;
    all.lagged += lagged;
    own.last = off;
  }

  /** b, within limits, and what an observation of this engine is worth, 0..1. */
  of(engine: string): { spread: number; worth: number } {
    const own = this.#engines.get(engine);
    const count = PRIOR + this.#all.count - (own?.count ?? 0);
    const off = PRIOR * SPREAD_PRIOR + this.#all.off - (own?.off ?? 0);
    // A Laplace density of mean absolute deviation b has the variance 2·b².
    const squared = PRIOR * 2 * SPREAD_PRIOR ** 2 + this.#all.squared - (own?.squared ?? 0);
    const r = Math.min(CORRELATION_MOST, Math.max(0, (this.#all.lagged - (own?.lagged ?? 0)) / squared));
    return { spread: Math.min(SPREAD_MOST, Math.max(SPREAD_LEAST, off / count)), worth: (1 - r) / (1 + r) };
  }

  forget(engine: string): void {
    const own = this.#engines.get(engine);
    if (own === undefined) return;
    this.#engines.delete(engine);
    for (const key of SUMS) this.#all[key] -= own[key];
  }

  #own(engine: string): Own {
    let own = this.#engines.get(engine);
    if (own === undefined) {
      own = { count: 0, off: 0, squared: 0, lagged: 0, mean: 0, last: null };
      this.#engines.set(engine, own);
    }
    return own;
  }
}

/** What a sum of the last observations changes by. */
function fading(value: number, sum: number): number {
  return value - sum / MEMORY;
}

const SUMS = ["count", "off", "squared", "lagged"] as const;

/** Observations of an engine that count. */
const MEMORY = 1000;
/** What is assumed at first, and how many observations that is worth. */
const SPREAD_PRIOR = 0.5;
const PRIOR = 20;
/** Emulated engines are steadier than any real one; below this the test would take a batch's hiccup for a change. */
const SPREAD_LEAST = 0.3;
/** Above it three times as slow would take minutes to tell. */
const SPREAD_MOST = 0.8;
/** An engine that is always a little slower than the others is no noise. */
const MEAN_GAIN = 1 / 100;
/** So that a few answers that hung don't blunt the test. */
const OFF_MOST = 2;
const CORRELATION_MOST = 0.9;

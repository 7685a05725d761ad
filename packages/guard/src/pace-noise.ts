/**
 * How noisy the pace of a class's healthy engines is: the spread b of one observation, and how much those that follow each
 * other resemble each other. A queue that formed by chance makes ten answers in a row late; they are one piece of news,
 * not ten. For a process with lag-one correlation r the mean of n observations is as good as that of
 *
 *     n·(1 − r)/(1 + r)
 *
 * independent ones (first-order autoregression; Bayley & Hammersley 1946), so each counts for that part of one.
 */
export class PaceNoise {
  readonly #engines = new Map<string, { mean: number; last: number | null }>();
  #spread = SPREAD_START;
  #variance = 2 * SPREAD_START * SPREAD_START;
  #covariance = 0;
  #count = 0;

  add(engine: string, x: number): void {
    let own = this.#engines.get(engine);
    if (own === undefined) {
      own = { mean: 0, last: null };
      this.#engines.set(engine, own);
    }
    // So that a few answers that hung don't blunt the test.
    const off = Math.min(OFF_MOST, Math.max(-OFF_MOST, x - own.mean));
    own.mean += MEAN_GAIN * off;
    this.#count += 1;
    const gain = Math.max(GAIN, 1 / (this.#count + PRIOR));
    this.#spread += gain * (Math.abs(off) - this.#spread);
    this.#variance += gain * (off * off - this.#variance);
    if (own.last !== null) this.#covariance += gain * (off * own.last - this.#covariance);
    own.last = off;
  }

  /** b: mean absolute deviation of an observation, within limits. */
  get spread(): number {
    return Math.min(SPREAD_MOST, Math.max(SPREAD_LEAST, this.#spread));
  }

  get worth(): number {
    const correlation = this.#variance > 0 ? this.#covariance / this.#variance : 0;
    const r = Math.min(CORRELATION_MOST, Math.max(0, correlation));
    return (1 - r) / (1 + r);
  }

  forget(engine: string): void {
    this.#engines.delete(engine);
  }
}

const SPREAD_START = 0.5;
/** The start counts like so many observations. */
const PRIOR = 20;
/** Emulated engines are steadier than any real one; below this the test would take a batch's hiccup for a change. */
const SPREAD_LEAST = 0.3;
/** Above it three times as slow would take minutes to tell. */
const SPREAD_MOST = 0.8;
const GAIN = 1 / 1000;
/** An engine that is always a little slower than the others is no noise. */
const MEAN_GAIN = 1 / 100;
const OFF_MOST = 2;
const CORRELATION_MOST = 0.9;

/**
 * The rate at which work arrives, from a sliding window whose length fits the load.
 *
 * A short window follows a change within seconds but is noisy: Poisson arrivals of 25/s give ±14 % over two seconds, and a
 * convex latency curve turns that noise into too high a mean. A long one is exact and late. So the windows double from
 * `shortestMs`, and the rate is taken from the longest one that no shorter one contradicts (Lepski's rule, four standard
 * deviations). At a steady load that is soon the longest; after a step it is the shortest again.
 */
export class WorkRate {
  readonly #shortestMs: number;
  readonly #bucketMs: number;
  readonly #startMs: number;
  /** Work, and the sum of its squares, that had arrived when each bucket began. */
  readonly #work: Float64Array = new Float64Array(BUCKETS);
  readonly #squares: Float64Array = new Float64Array(BUCKETS);
  #totalWork = 0;
  #totalSquares = 0;
  #bucket = 0;

  constructor(nowMs: number, shortestMs: number) {
    this.#shortestMs = shortestMs;
    this.#bucketMs = shortestMs / BUCKETS_IN_SHORTEST;
    this.#startMs = nowMs;
  }

  /** Negative work takes back what a cancelled request will not use. */
  add(nowMs: number, work: number): void {
    this.#advance(nowMs);
    this.#totalWork += work;
    if (work > 0) this.#totalSquares += work * work;
  }

  /** Work units/s at `nowMs`, and the standard deviation of that estimate. */
  at(nowMs: number): { rateWps: number; deviationWps: number } {
    this.#advance(nowMs);
    const windows: { rate: number; squares: number; seconds: number }[] = [];
    for (let doublings = 0; doublings < WINDOWS; doublings++) {
      const window = this.#window(nowMs, BUCKETS_IN_SHORTEST << doublings);
      const longest = windows.at(-1);
      if (longest !== undefined && window.seconds <= longest.seconds) break;
      if (windows.some((shorter) => contradicts(shorter, window))) break;
      windows.push(window);
    }
    const { rate, squares, seconds } = windows.at(-1)!;
    return { rateWps: Math.max(0, rate), deviationWps: Math.sqrt(squares / seconds) };
  }

  #window(nowMs: number, buckets: number): { rate: number; squares: number; seconds: number } {
    const first = Math.max(0, this.#bucket - buckets + 1);
    const coveredMs = nowMs - this.#startMs - first * this.#bucketMs;
    // Before the first request the engine was idle, so a young window is never shorter than the shortest.
    const seconds = Math.max(coveredMs, this.#shortestMs) / 1000;
    return {
      rate: (this.#totalWork - this.#work[first % BUCKETS]!) / seconds,
      squares: (this.#totalSquares - this.#squares[first % BUCKETS]!) / seconds,
      seconds,
    };
  }

  #advance(nowMs: number): void {
    const bucket = Math.floor((nowMs - this.#startMs) / this.#bucketMs);
    for (let next = Math.max(this.#bucket + 1, bucket - BUCKETS + 1); next <= bucket; next++) {
      this.#work[next % BUCKETS] = this.#totalWork;
      this.#squares[next % BUCKETS] = this.#totalSquares;
    }
    this.#bucket = Math.max(this.#bucket, bucket);
  }
}

const BUCKETS_IN_SHORTEST = 20;
/** 2 s to 128 s by default: at 25 requests/s the longest is good to 1.8 %. */
const WINDOWS = 7;
const BUCKETS = (BUCKETS_IN_SHORTEST << (WINDOWS - 1)) + 1;
/** Three would be contradicted by chance in one admission of a hundred, since every pair of windows is compared. */
const DEVIATIONS = 4;

function contradicts(
  shorter: { rate: number; squares: number; seconds: number },
  longer: { rate: number; squares: number },
): boolean {
  // The variance of a Poisson rate of work is (squared work per second) ÷ seconds.
  const deviation = Math.sqrt(Math.max(shorter.squares, longer.squares) / shorter.seconds);
  return Math.abs(shorter.rate - longer.rate) > DEVIATIONS * deviation;
}

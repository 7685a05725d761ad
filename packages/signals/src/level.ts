/**
 * A level that rises fast and falls slowly, from counts of arrivals in windows.
 *
 * Two exponential means run side by side, F over 5 s and L over 30 s; L is the level. When F stands above L by more than
 * chance would have it, L jumps to F. Chance: arrivals are Poisson, so a mean with time constant τ of a rate λ has the
 * variance λ/2τ, and only what is beyond 3 of its deviations counts as a rise. That keeps a steady level unbiased, which
 * "up fast, down slowly" on the counts themselves would not: over 60,000 windows of 1 s it stands 0.6 % high at 2
 * requests/s and within 0.3 % from 10 on, and wanders by 4 % (one deviation) at 10 and 1.3 % at 100. Half of a doubling
 * is taken over within 4 s; a fall takes 30 s to go by 63 %.
 */
export class Level {
  #fast = 0;
  #slow = 0;
  /** null before the first arrival. */
  #seenMs: number | null = null;

  add(count: number, windowMs: number): void {
    const rate = (count * 1000) / windowMs;
    if (this.#seenMs === null) {
      // Nothing has begun yet; and the window in which it does holds only a part of one, so that the next replaces it.
      // Counted in, they would keep a new gateway's demand some 10 % low for half a minute, and its engines over their load.
      if (count === 0) return;
      this.#fast = rate;
      this.#slow = rate;
      this.#seenMs = 0;
      return;
    }
    const seenMs = this.#seenMs + windowMs;
    this.#seenMs = seenMs;
    // The first windows are plain means: an exponential mean from zero would need its time constant to get there.
    const weight = (tauMs: number) => Math.max(1 - Math.exp(-windowMs / tauMs), windowMs / seenMs);
    this.#fast += (rate - this.#fast) * weight(FAST_MS);
    this.#slow += (rate - this.#slow) * weight(SLOW_MS);
    const deviation = Math.sqrt(Math.max(this.#slow, MIN_RPS) / ((2 * FAST_MS) / 1000));
    if (this.#fast > this.#slow + DEVIATIONS * deviation) this.#slow = this.#fast;
  }

  /** Whole windows seen since the first arrival, ms. */
  get overMs(): number {
    return this.#seenMs ?? 0;
  }

  get perSecond(): number {
    return this.#slow;
  }
}

const FAST_MS = 5000;
const SLOW_MS = 30_000;
const DEVIATIONS = 3;
/** Below this a single arrival would look like a rise. */
const MIN_RPS = 0.1;

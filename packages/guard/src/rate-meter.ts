/** A rate follows its events over about this long. */
const MEAN_MS = 10_000;

/** Events that a mean of this rate is as sure as; its relative deviation by chance is 1 ÷ √ of it. */
export function meanedEvents(rps: number): number {
  return (rps * 2 * MEAN_MS) / 1000;
}

/** Events per second, the newest weighing most; unbiased from the first interval on. Pure: it is told how time passes. */
export class RateMeter {
  #weighted = 0;
  #weight = 0;

  /** @param count events in the interval of `passedMs` that ends now */
  add(count: number, passedMs: number): void {
    const keeps = Math.exp(-passedMs / MEAN_MS);
    this.#weighted = this.#weighted * keeps + count;
    this.#weight = this.#weight * keeps + passedMs;
  }

  get rps(): number {
    return this.#weight > 0 ? (this.#weighted * 1000) / this.#weight : 0;
  }
}

/**
 * Is an engine slow? A cumulative sum (Page 1954) of log likelihood ratios over x, the natural logarithm of an observed
 * time ÷ the expected one, less the class's median of the same:
 *
 *     S ← max(0, S + w·(|x| − |x − δ|)/b)        P₀: Laplace(0, b)        P₁: Laplace(δ, b), δ = ln 3
 *
 * Latencies have heavy tails; with this density one observation adds δ/b at most, however late it was. Whatever lies
 * beyond √3 times the median speaks for slow, what lies below for healthy. w (`pace-noise.ts`) makes less of observations
 * that resemble those before them; 1 where they are independent. Since P₁/P₀ has mean 1 under P₀, the mean
 * number of observations to a false alarm is at least e^limit (Lorden 1971; by Ville's inequality for each restart).
 */
export const SLOW_RATIO = 3;
export const SLOW_LOG_RATIO: number = Math.log(SLOW_RATIO);

/** Mean time between false alarms of one measure of one engine, hours: two measures make 0.1 in 1,000 engine-hours. */
const FALSE_ALARM_HOURS = 20_000;

/** A tick's observations of an engine count as one, their median: a burst that met one long batch is one event. */
const SLOW_OBSERVATIONS_PER_S = 4;

/** ln of the observations in that time at the most that there can be. */
export const SLOW_LIMIT: number = Math.log(FALSE_ALARM_HOURS * 3600 * SLOW_OBSERVATIONS_PER_S);

/** The running sum of one measure (time to first token, or between tokens) of one engine. */
export class SlowTest {
  #score = 0;

  /**
   * @param x ln(observed ÷ expected) less the class's median of it
   * @param spread b, mean absolute deviation of x at healthy engines
   * @param worth w, 0..1
   */
  observe(x: number, spread: number, worth = 1): void {
    const added = (worth * (Math.abs(x) - Math.abs(x - SLOW_LOG_RATIO))) / spread;
    this.#score = Math.min(SLOW_LIMIT, Math.max(0, this.#score + added));
  }

  get alarmed(): boolean {
    return this.#score >= SLOW_LIMIT;
  }

  /** S, ln of the likelihood ratio of slow to healthy. */
  get logRatio(): number {
    return this.#score;
  }

  get suspicion(): number {
    return this.#score / SLOW_LIMIT;
  }
}

/** Whether an observation speaks for a healthy engine. */
export function looksHealthy(x: number): boolean {
  return x < SLOW_LOG_RATIO / 2;
}

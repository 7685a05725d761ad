/**
 * Rate of a counter over a sliding window, per second, from readings at uneven times. A counter that falls was reset: its
 * process restarted from zero, and what it shows now was counted since.
 */
export class RateWindow {
  readonly #windowMs: number;
  #last: { atMs: number; series: ReadonlyMap<string, number> } | null = null;
  /** What was counted between two readings, oldest first. */
  #steps: { readonly fromMs: number; readonly toMs: number; readonly counted: number }[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** A reading of every series of the counter. One that was not in the last reading adds nothing yet: its past is unknown. */
  add(series: ReadonlyMap<string, number>, nowMs: number): void {
    if (series.size === 0) return;
    const last = this.#last;
    if (last !== null && nowMs <= last.atMs) return;
    this.#last = { atMs: nowMs, series };
    if (last === null) return;
    let counted = 0;
    for (const [key, value] of series) {
      const before = last.series.get(key);
      if (before !== undefined) counted += value >= before ? value - before : value;
    }
    this.#steps.push({ fromMs: last.atMs, toMs: nowMs, counted });
  }

  /** Null until two readings lie within the window. */
  perSecond(nowMs: number): number | null {
    this.#steps = this.#steps.filter((step) => step.toMs > nowMs - this.#windowMs);
    const first = this.#steps[0];
    const last = this.#steps.at(-1);
    if (first === undefined || last === undefined) return null;
    const counted = this.#steps.reduce((total, step) => total + step.counted, 0);
    return (counted * 1000) / (last.toMs - first.fromMs);
  }
}

/**
 * How one class's engines keep to their expected times, for one measure. An engine's place is the median of its last few
 * log ratios, the class's the lower median of the places: a profile that is wrong, or a load that nobody planned, makes
 * all engines slow alike and none of them an outlier.
 */
export class ClassPace {
  readonly #places = new Map<string, { readonly values: number[]; atMs: number }>();
  #spread = SPREAD_START;

  /** Log ratio of an engine in this tick. Call for all engines before asking for the median. */
  add(engine: string, logRatio: number, nowMs: number): void {
    let place = this.#places.get(engine);
    if (place === undefined) {
      place = { values: [], atMs: nowMs };
      this.#places.set(engine, place);
    }
    if (nowMs - place.atMs > OLD_MS) place.values.length = 0;
    place.atMs = nowMs;
    if (place.values.length >= PLACE_LEAST) {
      const off = Math.abs(logRatio - median(place.values));
      this.#spread += SPREAD_GAIN * (Math.min(off, SPREAD_OFF_MOST) - this.#spread);
    }
    place.values.push(logRatio);
    if (place.values.length > PLACE_OF) place.values.shift();
  }

  /** The class's median log ratio; null where fewer than two engines were seen lately: there is nothing to compare with. */
  median(nowMs: number): number | null {
    const places: number[] = [];
    for (const { values, atMs } of this.#places.values())
      if (nowMs - atMs <= OLD_MS && values.length >= PLACE_LEAST) places.push(median(values));
    return places.length < 2 ? null : lowerMedian(places);
  }

  /** Log ratio of an engine lately; null before enough was seen. */
  place(engine: string): number | null {
    const values = this.#places.get(engine)?.values;
    return values === undefined || values.length < PLACE_LEAST ? null : median(values);
  }

  /** b: mean absolute deviation of an observation from its engine's place. */
  get spread(): number {
    return Math.min(SPREAD_MOST, Math.max(SPREAD_LEAST, this.#spread));
  }

  forget(engine: string): void {
    this.#places.delete(engine);
  }
}

/**
 * Values that make a place. When all engines turn slow at once the median follows after half of them, before any sum can
 * reach its limit: at the least spread an observation adds a fifth of it.
 */
const PLACE_OF = 5;
const PLACE_LEAST = 3;
/** A place older than this says nothing about now. */
const OLD_MS = 60_000;

const SPREAD_START = 0.5;
/** Emulated engines are steadier than any real one; below this the test would take a batch's hiccup for a change. */
const SPREAD_LEAST = 0.3;
/** Above it three times as slow would take minutes to tell. */
const SPREAD_MOST = 0.8;
const SPREAD_GAIN = 1 / 500;
/** So that a few answers that hung don't blunt the test. */
const SPREAD_OFF_MOST = 2;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Of two engines the better one is the measure: their mean would hide which of them is slow. */
function lowerMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 1]!;
}

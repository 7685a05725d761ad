import { PaceNoise } from "./pace-noise.ts";

/** One engine's tick beside its class. */
export interface Judged {
  /** ln(observed ÷ expected) less the class's median of it, or less −0.35 where that is greater. */
  readonly x: number;
  /** b: mean absolute deviation of such an x at a healthy engine. */
  readonly spread: number;
  /** 0..1: what one observation is worth, since those that follow each other resemble each other. */
  readonly worth: number;
}

interface Place {
  readonly values: number[];
  atMs: number;
  /** Of the values; null = too few. */
  median: number | null;
}

/**
 * How one class's engines keep to their expected times, for one measure. An engine's place is the median of its last few
 * log ratios, the class's the lower median of the places: a profile that is wrong, or a load that nobody planned, makes
 * all engines slow alike and none of them an outlier.
 */
export class ClassPace {
  readonly #places = new Map<string, Place>();
  readonly #noise = new PaceNoise();
  /** The class's median as of a moment; asked for each engine that is judged, and for each late stream. */
  #median: { readonly atMs: number; readonly value: number | null } | null = null;

  /** Log ratio of an engine in this tick. Call for all engines before judging any. */
  add(engine: string, logRatio: number, nowMs: number): void {
    let place = this.#places.get(engine);
    if (place === undefined) {
      place = { values: [], atMs: nowMs, median: null };
      this.#places.set(engine, place);
    }
    if (nowMs - place.atMs > OLD_MS) place.values.length = 0;
    place.atMs = nowMs;
    place.values.push(logRatio);
    if (place.values.length > PLACE_OF) place.values.shift();
    place.median = place.values.length < PLACE_LEAST ? null : median(place.values);
    this.#median = null;
  }

  /**
   * @param healthy nothing speaks against the engine, so its noise is what healthy engines have
   * @returns null where fewer than two engines were seen lately: there is nothing to compare with
   */
  judge(engine: string, logRatio: number, healthy: boolean, nowMs: number): Judged | null {
    const usual = this.median(nowMs);
    if (usual === null) return null;
    const x = logRatio - Math.max(usual, USUAL_LEAST);
    if (healthy) this.#noise.add(engine, x);
    const { spread, worth } = this.#noise.of(engine);
    return { x, spread, worth };
  }

  /** The class's median log ratio; null where fewer than two engines were seen lately. */
  median(nowMs: number): number | null {
    if (this.#median?.atMs !== nowMs) this.#median = { atMs: nowMs, value: this.#find(nowMs) };
    return this.#median.value;
  }

  #find(nowMs: number): number | null {
    const places: number[] = [];
    for (const place of this.#places.values())
      if (nowMs - place.atMs <= OLD_MS && place.median !== null) places.push(place.median);
    return places.length < 2 ? null : lowerMedian(places);
  }

  /** Log ratio of an engine lately; null before enough was seen. */
  place(engine: string): number | null {
    return this.#places.get(engine)?.median ?? null;
  }

  forget(engine: string): void {
    this.#places.delete(engine);
    this.#median = null;
    this.#noise.forget(engine);
  }
}

/**
 * Values that make a place. When all engines turn slow at once the median follows after half of them, before any sum can
 * reach its limit: at the least spread an observation adds a fifth of it.
 */
const PLACE_OF = 5;
const PLACE_LEAST = 3;
/**
 * Warm caches make engines several times faster than their profile, which is of prompts that no cache knows. Beyond this
 * an engine is held to its profile: one that just joined is cold, not slow, and at the floor it would never get warm.
 */
const USUAL_LEAST = -0.35;
/** A place older than this says nothing about now. */
const OLD_MS = 60_000;

export function median(values: readonly number[]): number {
  if (values.length === 1) return values[0]!;
  const sorted = inOrder(values);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Of two engines the better one is the measure: their mean would hide which of them is slow. */
function lowerMedian(values: readonly number[]): number {
  const sorted = inOrder(values);
  return sorted[(sorted.length - 1) >> 1]!;
}

/** A copy. A few numbers, as at almost every tick, are put in order sooner than `sort` has called back. */
function inOrder(values: readonly number[]): number[] {
  const sorted = values.slice();
  if (sorted.length > FEW) return sorted.sort((a, b) => a - b);
  for (let next = 1; next < sorted.length; next++) {
    const value = sorted[next]!;
    let at = next;
    for (; at > 0 && sorted[at - 1]! > value; at--) sorted[at] = sorted[at - 1]!;
    sorted[at] = value;
  }
  return sorted;
}

const FEW = 16;

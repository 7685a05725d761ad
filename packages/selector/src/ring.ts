import { GuidevaneError } from "@guidevane/core";
import { xxh32OfWord } from "./xxh32.ts";

/** The slots of one cell, each owned by an engine of the cell's own list. */
export interface Ring {
  /** Ids; `owners` points into them. */
  readonly engines: readonly string[];
  /** One entry per slot; a power of two of them. */
  readonly owners: Uint16Array;
}

export interface RingEdit extends Ring {
  /** Slots whose owner is another engine than before. */
  readonly moved: number;
}

/** Ring slots are u16 indices. */
const ENGINES_MAX = 65_536;

/**
 * A ring without a past. Each engine gets within one slot of weight × slots, an engine of weight zero none; its slots are
 * strewn over the ring.
 *
 * @param weights one per engine, not negative; divided by their sum
 * @param slots a power of two
 * @throws GuidevaneError `bad_problem` when weights or slots are none of that, or all weights are 0
 */
export function buildRing(engines: readonly string[], weights: ArrayLike<number>, slots: number): RingEdit {
  return editRing({ engines: [], owners: new Uint16Array(0) }, engines, weights, slots);
}

/**
 * The ring that meets the new weights with the fewest moved slots: where a share may be rounded up or down, the way that
 * leaves more slots in place is taken. An engine keeps its slots by its id, wherever it stands in the list.
 *
 * A previous ring of another size is no past. Pure: the same arguments give the same ring.
 *
 * @param weights one per engine, not negative; divided by their sum
 * @param slots a power of two
 * @throws GuidevaneError `bad_problem` when weights or slots are none of that, or all weights are 0
 */
export function editRing(
  previous: Ring,
  engines: readonly string[],
  weights: ArrayLike<number>,
  slots: number,
): RingEdit {
  check(engines, weights, slots);
  const hasPast = previous.owners.length === slots;
  const indexOf = new Map(engines.map((id, index) => [id, index]));
  const owners = new Int32Array(slots).fill(NOBODY);
  const held = new Int32Array(engines.length);
  if (hasPast) {
    for (let slot = 0; slot < slots; slot++) {
      const owner = indexOf.get(previous.engines[previous.owners[slot]!]!) ?? NOBODY;
      owners[slot] = owner;
      if (owner !== NOBODY) held[owner]!++;
    }
  }
  const target = slotCounts(weights, slots, held);

  // One order for giving and taking, the same at every edit: weights that swing move the same keys back and forth, and
  // the others keep their caches.
  const order = strewnOrder(slots);
  const surplus = held.map((count, engine) => count - target[engine]!);
  const free: number[] = [];
  for (const slot of order) {
    const owner = owners[slot]!;
    if (owner === NOBODY) free.push(slot);
    else if (surplus[owner]! > 0) {
      surplus[owner]!--;
      free.push(slot);
    }
  }
  let next = 0;
  for (let engine = 0; engine < engines.length; engine++) {
    for (let lack = -surplus[engine]!; lack > 0; lack--) owners[free[next++]!] = engine;
  }
  return { engines, owners: Uint16Array.from(owners), moved: free.length };
}

/** Slots owned by each of `engines` engines. */
export function countSlots(owners: Uint16Array, engines: number): Uint32Array {
  const counts = new Uint32Array(engines);
  for (const owner of owners) counts[owner]!++;
  return counts;
}

const NOBODY = -1;
/** A share this near to a whole number of slots is that number; weights are doubles divided by their sum. */
const WHOLE = 1e-6;

/**
 * Slots for each engine: floor or ceiling of weight × slots, summing to `slots`. Rounding up is free for an engine that
 * already holds more than the floor, so those come first; then the largest remainders, then the list's order.
 */
function slotCounts(weights: ArrayLike<number>, slots: number, held: Int32Array): Int32Array {
  const sum = Array.from(weights).reduce((total, weight) => total + weight, 0);
  const counts = new Int32Array(weights.length);
  const partial: { engine: number; remainder: number; keeps: boolean }[] = [];
  let left = slots;
  for (let engine = 0; engine < weights.length; engine++) {
    const exact = (weights[engine]! / sum) * slots;
    const whole = Math.abs(exact - Math.round(exact)) < WHOLE ? Math.round(exact) : Math.floor(exact);
    counts[engine] = whole;
    left -= whole;
    const remainder = exact - whole;
    if (remainder >= WHOLE) partial.push({ engine, remainder, keeps: held[engine]! > whole });
  }
  partial.sort((a, b) => Number(b.keeps) - Number(a.keeps) || b.remainder - a.remainder || a.engine - b.engine);
  for (const { engine } of partial.slice(0, left)) counts[engine]!++;
  return counts;
}

/** All slots, in an order that looks like chance and is always the same. */
function strewnOrder(slots: number): Uint32Array {
  const known = orders.get(slots);
  if (known !== undefined) return known;
  const order = Uint32Array.from({ length: slots }, (_, slot) => slot);
  const draws = order.map((slot) => xxh32OfWord(slot, slots));
  order.sort((a, b) => draws[a]! - draws[b]! || a - b);
  orders.set(slots, order);
  return order;
}

const orders = new Map<number, Uint32Array>();

function check(engines: readonly string[], weights: ArrayLike<number>, slots: number): void {
  if (!Number.isInteger(slots) || slots < 1 || slots > 2 ** 30 || (slots & (slots - 1)) !== 0)
    throw new GuidevaneError("bad_problem", `a ring needs a power of two slots, got ${slots}`);
  if (engines.length !== weights.length)
    throw new GuidevaneError("bad_problem", `${engines.length} engines, but ${weights.length} weights`);
  if (engines.length > ENGINES_MAX)
    throw new GuidevaneError("bad_problem", `a ring holds ${ENGINES_MAX} engines, got ${engines.length}`);
  let sum = 0;
  for (let engine = 0; engine < weights.length; engine++) {
    const weight = weights[engine]!;
    if (!(weight >= 0 && weight < Number.POSITIVE_INFINITY))
      throw new GuidevaneError("bad_problem", `the weight of ${engines[engine]} must be 0 or more, got ${weight}`);
    sum += weight;
  }
  if (!(sum > 0 && sum < Number.POSITIVE_INFINITY))
    throw new GuidevaneError("bad_problem", `a ring needs weights with a positive sum, got ${sum}`);
}

import { GuidevaneError } from "@guidevane/core";
import { ln } from "./ln.ts";
import { slotWishes } from "./slot-wishes.ts";
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
 * Which slots move is chosen by what each wishes for (slot-wishes.ts), the same at every edit: an engine that was away gets
 * nearly all that were its own, weights that swing move the same keys back and forth, and the others keep their caches.
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
  const owners = new Int32Array(slots).fill(NOBODY);
  const held = new Int32Array(engines.length);
  if (previous.owners.length === slots) keepOwners(previous, engines, owners, held);
  const target = slotCounts(weights, slots, held);

  const surplus = held.map((count, engine) => count - target[engine]!);
  const moved = giveWished(engines, owners, target, surplus) + giveRest(owners, surplus);
  return { engines, owners: new Uint16Array(owners), moved };
}

/** Slots stay with those of their engines that are still there. */
function keepOwners(previous: Ring, engines: readonly string[], owners: Int32Array, held: Int32Array): void {
  const indexOf = new Map(engines.map((id, index) => [id, index]));
  const indexNow = previous.engines.map((id) => indexOf.get(id) ?? NOBODY);
  for (let slot = 0; slot < owners.length; slot++) {
    const owner = indexNow[previous.owners[slot]!] ?? NOBODY;
    owners[slot] = owner;
    if (owner !== NOBODY) held[owner]!++;
  }
}

/** Who lacks slots gets those that wish for it more than for their owner, the most wished first. @returns how many moved */
function giveWished(engines: readonly string[], owners: Int32Array, target: Int32Array, surplus: Int32Array): number {
  const slots = owners.length;
  const wishes = (engine: number): Wishes => ({ of: slotWishes(engines[engine]!, slots), more: ln(target[engine]!) });
  const givers = Array.from(surplus, (count, engine) => (count > 0 && target[engine]! > 0 ? wishes(engine) : null));
  let open = strewnOrder(slots);
  let moved = 0;
  for (;;) {
    const takers = [...surplus.keys()].filter((engine) => surplus[engine]! < 0);
    if (takers.length === 0 || takers.length > TAKERS_MAX) return moved;
    const { taker, keys } = offers(open, owners, surplus, takers, takers.map(wishes), givers);
    const left = giveOffered(open, owners, surplus, taker, keys.sort());
    moved += keys.length - left.passed - left.slots.length;
    open = Uint32Array.from(left.slots);
  }
}

/**
 * Who wishes most for each open slot that may be given, and the keys that put those slots in order. A function of its own,
 * like the next: V8 optimises a long loop within another one again and again, and forgets it at each end of it.
 */
function offers(
  open: Uint32Array,
  owners: Int32Array,
  surplus: Int32Array,
  takers: readonly number[],
  wanted: readonly Wishes[],
  givers: readonly (Wishes | null)[],
): { taker: Int32Array; keys: Float64Array } {
  const slots = owners.length;
  const taker = new Int32Array(open.length);
  const keys = new Float64Array(open.length);
  let candidates = 0;
  for (let at = 0; at < open.length; at++) {
    const slot = open[at]!;
    const owner = owners[slot]!;
    if (owner !== NOBODY && surplus[owner]! <= 0) continue;
    let best = Number.NEGATIVE_INFINITY;
    let second = LEAST_WISH;
    for (let index = 0; index < wanted.length; index++) {
      const wish = wanted[index]!.of[slot]! + wanted[index]!.more;
      if (wish > best) {
        second = Math.max(second, best);
        best = wish;
        taker[at] = takers[index]!;
      } else second = Math.max(second, wish);
    }
    // Slots without an owner go first, for they must go somewhere: those before others that would lose more elsewhere.
    const own = owner === NOBODY ? null : givers[owner];
    const gain = own == null ? best - second + OWNERLESS : best - own.of[slot]! - own.more;
    keys[candidates++] = at - Math.round(gain * GAIN_STEPS) * slots;
  }
  return { taker, keys: keys.subarray(0, candidates) };
}

/** Gives slots in the order of the keys; `slots` of the answer: those whose taker had enough, for another in the next round. */
function giveOffered(
  open: Uint32Array,
  owners: Int32Array,
  surplus: Int32Array,
  taker: Int32Array,
  keys: Float64Array,
): { slots: number[]; passed: number } {
  const slots: number[] = [];
  let passed = 0;
  for (let next = 0; next < keys.length; next++) {
    const key = keys[next]!;
    const at = key - Math.floor(key / owners.length) * owners.length;
    const slot = open[at]!;
    const owner = owners[slot]!;
    if (owner !== NOBODY && surplus[owner]! <= 0) {
      passed++;
      continue;
    }
    if (surplus[taker[at]!]! >= 0) {
      slots.push(slot);
      continue;
    }
    if (owner !== NOBODY) surplus[owner]!--;
    surplus[taker[at]!]!++;
    owners[slot] = taker[at]!;
  }
  return { slots, passed };
}

/** The same where so many engines lack slots that wishes would take too long: in one order for giving and taking. */
function giveRest(owners: Int32Array, surplus: Int32Array): number {
  // Targets are as many as slots: where nobody lacks one, none is without an owner.
  if (surplus.every((count) => count === 0)) return 0;
  const free: number[] = [];
  for (const slot of strewnOrder(owners.length)) {
    const owner = owners[slot]!;
    if (owner === NOBODY) free.push(slot);
    else if (surplus[owner]! > 0) {
      surplus[owner]!--;
      free.push(slot);
    }
  }
  let next = 0;
  for (let engine = 0; engine < surplus.length; engine++) {
    for (; surplus[engine]! < 0; surplus[engine]!++) owners[free[next++]!] = engine;
  }
  return free.length;
}

interface Wishes {
  /** By slot. */
  readonly of: Float64Array;
  /** ln of the engine's slots. */
  readonly more: number;
}

/** Beyond any gain; and below any wish. */
const OWNERLESS = 100;
const LEAST_WISH = -10;
/** A gain is sorted as a whole number of such steps, and where that is the same by the slot's place; both in 53 bits. */
const GAIN_STEPS = 2 ** 15;
const TAKERS_MAX = 64;

/** Slots owned by each of `engines` engines. */
export function countSlots(owners: Uint16Array, engines: number): Uint32Array {
  const counts = new Uint32Array(engines);
  for (let slot = 0; slot < owners.length; slot++) counts[owners[slot]!]!++;
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

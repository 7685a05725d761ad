/** A plan's sheds hold only as long as the plan is heard of. */
export const SHED_LAPSES_MS = 60_000;

/** Salt of the draw, so that sheds and the other draws from one key are independent. */
const SHED_SALT = 0x5eed_5a17;

/** One request as the plan's sheds see it. */
export interface ShedFacts {
  /** Fraction of the cell's demand that the plan sheds, 0..1. */
  readonly shed: number;
  /** Part of the cell's requests that begin a conversation, 0..1. */
  readonly firstShare: number;
  /** Whether this one does. */
  readonly first: boolean;
  /** XXH32 of the key with seed 1. */
  readonly keyHash2: number;
  /** Since the last word from the control plane. */
  readonly sinceControlMs: number;
}

/**
 * Whether the plan sheds this request. Conversations that have not begun are shed before those that have:
 *
 *     first requests with probability min(1, shed ÷ f),   later ones with (shed − f)⁺ ÷ (1 − f),   f = first ÷ all,
 *
 * which is `shed` of all. Drawn from the key, so that a conversation is shed or kept as a whole.
 */
export function plannedShed({ shed, firstShare, first, keyHash2, sinceControlMs }: ShedFacts): boolean {
  if (!(shed > 0) || sinceControlMs >= SHED_LAPSES_MS) return false;
  const part = first ? shed / firstShare : (shed - firstShare) / (1 - firstShare);
  // Without any first request seen, or any other, the part is not a number: then all have the same one.
  return mix32(keyHash2 ^ SHED_SALT) / 4_294_967_296 < (Number.isFinite(part) ? part : shed);
}

/** Counts fade to half over this long: several conversations, and soon after the traffic changes. */
const HALF_LIFE_MS = 60_000;
/** Requests that are taken to have been first ones before any was seen, so that the first few don't decide alone. */
const ASSUMED = 1;

/** Part of a cell's requests that begin a conversation, of the last minute or so. */
export class FirstShare {
  #first = ASSUMED;
  #all = ASSUMED;
  #atMs = 0;

  add(first: boolean, nowMs: number): void {
    const kept = 0.5 ** (Math.max(0, nowMs - this.#atMs) / HALF_LIFE_MS);
    this.#atMs = nowMs;
    this.#first = this.#first * kept + (first ? 1 : 0);
    this.#all = this.#all * kept + 1;
  }

  get value(): number {
    return this.#first / this.#all;
  }
}

const RETRY_AFTER_MAX_S = 30;

/** Retry-After for our own refusals: whole seconds, 1..30, spread so that clients don't return together. */
export function retryAfterS(draw: number): number {
  return 1 + Math.floor(draw * RETRY_AFTER_MAX_S);
}

/** The finaliser of MurmurHash3 (public domain, Austin Appleby): every bit of the input reaches every bit out. */
function mix32(word: number): number {
  let mixed = word >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

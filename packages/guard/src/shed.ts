/** A plan's sheds hold only as long as the plan is heard of. */
export const SHED_LAPSES_MS = 60_000;

/** Salt of the draw, so that sheds and the other draws from one key are independent. */
const SHED_SALT = 0x5eed_5a17;

/**
 * Whether the plan sheds this request. Drawn from the key, so that a conversation is shed or kept as a whole.
 *
 * @param shed fraction of the cell's demand that the plan sheds, 0..1
 * @param keyHash2 XXH32 of the key with seed 1
 * @param sinceControlMs since the last word from the control plane
 */
export function plannedShed(shed: number, keyHash2: number, sinceControlMs: number): boolean {
  if (!(shed > 0) || sinceControlMs >= SHED_LAPSES_MS) return false;
  return mix32(keyHash2 ^ SHED_SALT) / 4_294_967_296 < shed;
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

import { ln } from "./ln.ts";
import { xxh32OfWord } from "./xxh32.ts";

/**
 * Everything drawn for a key after its slot comes from its second hash, salted by the use, so that no draw repeats
 * another. An engine's salt is the XXH32 of its id, never its place in a list: gateways number engines differently.
 */

/** Salt of the draw that is held against an engine's factor; combined with the engine's own by exclusive or. */
const FACTOR_SALT = 0x5bd1e995;

/** A key's draw at an engine, from 0 to 2³² − 1. */
export function rendezvousDraw(hash2: number, idHash: number): number {
  return xxh32OfWord(hash2, idHash);
}

/**
 * Weighted rendezvous: the candidate with the least score takes the key. −ln(u)/w is the first arrival of a Poisson
 * process of rate w, so the least of several is at a candidate with probability w ÷ Σ w, whatever the others are.
 *
 * @param weight above 0
 */
export function rendezvousScore(draw: number, weight: number): number {
  // The half keeps u off 0 and 1.
  const u = (draw + 0.5) / 4_294_967_296;
  return -ln(u) / weight;
}

/**
 * Whether a score is above `least` beyond doubt, without the logarithm: −ln(u) ≥ 1 − u. Of many candidates all but a few
 * are told so.
 */
export function surelyScoresAbove(draw: number, weight: number, least: number): boolean {
  return 4_294_967_295.5 - draw > least * weight * UNITS;
}

/** 2³², and a billionth more for the rounding of both sides. */
const UNITS = 4_294_967_300;

/** Whether a key stays at an engine whose share is cut to `factor` 65535ths: all keys at 65535, none at 0. */
export function staysUnderFactor(hash2: number, idHash: number, factor: number): boolean {
  return xxh32OfWord(hash2, (idHash ^ FACTOR_SALT) >>> 0) % 65_535 < factor;
}

/** Hashes of a request that has no key: each count gives another pair, so that load spreads. */
export function keylessHash(count: number, seed: number): number {
  return xxh32OfWord(count, seed);
}

import type { HealthFacts } from "@guidevane/guard";
import { STATE } from "@guidevane/selector";

/** A bit of the word that routers don't read: the engine asked to be left alone for so long that nobody waits for it. */
export const COOLING_LONG: number = 1 << 24;

/** With this much of its cooling left, an engine may be asked again as the last choice. */
export const COOLING_WAITED_MS = 1000;

/**
 * An engine's facts as the word that routers read.
 *
 * @param coolingMs how long it still asks to be left alone
 * @param penalty what penalties leave of its share, 0..1
 */
export function stateWord({ out, outByProbe, draining, factor }: HealthFacts, coolingMs: number, penalty = 1): number {
  let word = Math.round(factor * penalty * STATE.factorMask) & STATE.factorMask;
  if (out) word |= STATE.out;
  if (outByProbe) word |= STATE.outByProbe;
  if (draining) word |= STATE.draining;
  if (coolingMs > 0) word |= STATE.cooling;
  if (coolingMs >= COOLING_WAITED_MS) word |= COOLING_LONG;
  return word >>> 0;
}

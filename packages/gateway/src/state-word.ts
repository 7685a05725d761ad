import type { HealthFacts } from "@guidevane/guard";
import { STATE } from "@guidevane/selector";

/** An engine's facts as the word that routers read. */
export function stateWord({ out, outByProbe, draining, factor }: HealthFacts): number {
  let word = Math.round(factor * STATE.factorMask) & STATE.factorMask;
  if (out) word |= STATE.out;
  if (outByProbe) word |= STATE.outByProbe;
  if (draining) word |= STATE.draining;
  return word >>> 0;
}

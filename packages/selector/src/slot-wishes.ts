import { ln } from "./ln.ts";
import { xxh32, xxh32OfWord } from "./xxh32.ts";

/**
 * How much each slot wishes for an engine, the same at every edit and for every other engine that there may be:
 *
 *     wish(slot, engine) = −ln(−ln u),  u in (0, 1) by the hash of both
 *
 * With ln(weight) added, a slot's most wished engine is each one with a probability that is its part of the weights
 * (weighted rendezvous). An edit that gives slots by what is wished more therefore finds, when an engine comes back, the
 * slots that were its own.
 */
export function slotWishes(engine: string, slots: number): Float64Array {
  const name = `${slots} ${engine}`;
  let found = known.get(name);
  if (found === undefined) {
    const bytes = Buffer.from(engine);
    const seed = xxh32(bytes, 0, bytes.length, 0);
    found = new Float64Array(slots);
    for (let slot = 0; slot < slots; slot++) found[slot] = -ln(-ln((xxh32OfWord(slot, seed) + 0.5) / 2 ** 32));
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(name, found);
  }
  return found;
}

/** 32 MB with 4,096 slots: to find the wishes of so many takes a tenth of a second. */
const KNOWN_MAX = 1024;
const known = new Map<string, Float64Array>();

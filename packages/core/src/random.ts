/** A source of numbers in [0, 1). Injected, so that a failure can be repeated. */
export type Random = () => number;

/**
 * Mulberry32 (public domain, Tommy Ettinger 2017): 32 bits of state, enough for tests, jitter and simulated arrivals;
 * never for anything that must not be guessed.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A draw of mean 0 and deviation 1, by Box and Muller; takes two numbers. */
export function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

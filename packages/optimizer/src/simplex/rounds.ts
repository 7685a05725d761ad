import { type Equaliser, equalise } from "./equalise.ts";
import { type Grid, regrid } from "./grid.ts";
import type { Network } from "./network.ts";
import { enterArcs, type Limits, type Pricing, takeSinks } from "./simplex.ts";

/** Rounds of a stage; few need more than 20. */
const MOST_ROUNDS = 50;
/** Where more than one node in so many enters in a round the simplex is the sooner way. */
const MANY = 4;

/**
 * Rounds in which arcs enter, at most one or two a row, and all components are then equalised. An arc that enters joins
 * two components, or splits and joins them, at levels of their own; the simplex would walk them to a common level engine
 * by engine and segment by segment, which from the second stage on is nine tenths of its pivots. The equaliser finds the
 * level at once, and cuts off what does not belong. Where no arc enters any more the tree is the optimal one.
 * False when a limit ended it before.
 */
export function enterInRounds(
  network: Network,
  grid: Grid,
  pricing: Pricing,
  equaliser: Equaliser,
  { eta, epsilon, limits }: { readonly eta: number; readonly epsilon: number; readonly limits: Limits },
): boolean {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const before = pricing.pivots;
    regrid(network, grid, eta);
    const finished = enterArcs(network, grid, pricing, epsilon, limits);
    takeSinks(network, grid);
    if (!finished) return false;
    const entered = pricing.pivots - before;
    if (entered === 0) return true;
    equalise(network, equaliser);
    if (MANY * entered > network.root) return true;
  }
  return true;
}

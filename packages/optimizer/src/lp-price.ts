import { leftMarginalAt, marginalAt } from "./engine-cost.ts";
import type { Found, Group, LpFleet } from "./lp-fleet.ts";

/** An idle engine's row has no price of its own; up to its first marginal a higher one only helps the bound. */
export function atLeastIdle(group: Group, priceMs: number): number {
  return Math.max(priceMs, group.cost.pieces[0]!.slopeMs);
}

/**
 * Two candidates for the engines' prices, one per engine of the problem. The programme's own fit together along the arcs
 * in use but are slopes of chords; the same moved into the marginals at the load found are exact where an engine's price
 * hangs on no other's. Whichever gives the higher bound serves.
 */
export function candidatePrices(fleet: LpFleet, { groupPriceMs, groupLoadWps }: Found): Float64Array[] {
  const own = new Float64Array(fleet.costs.length);
  const moved = new Float64Array(fleet.costs.length);
  for (const [index, group] of fleet.groups.entries()) {
    const price = atLeastIdle(group, groupPriceMs[index]!);
    const load = groupLoadWps[index]! / group.engines.length;
    const right = load >= group.cost.capacityWps * FULL ? Number.POSITIVE_INFINITY : marginalAt(group.cost, load);
    const marginal = Math.min(Math.max(price, leftMarginalAt(group.cost, load)), right);
    for (const engine of group.engines) {
      own[engine] = price;
      moved[engine] = marginal;
    }
  }
  return [own, moved];
}

const FULL = 1 - 1e-9;

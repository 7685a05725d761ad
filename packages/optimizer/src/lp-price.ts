import { leftMarginalAt, marginalAt } from "./engine-cost.ts";
import type { Found, Group, LpFleet } from "./lp-fleet.ts";

/** An idle engine's row has no price of its own; up to its first marginal a higher one only helps the bound. */
export function atLeastIdle({ problem }: LpFleet, { engine }: Group, priceMs: number): number {
  return Math.max(priceMs, marginalAt(problem.curves, engine, 0));
}

/**
 * Two candidates for the engines' prices, one per engine of the problem. The programme's own fit together along the arcs
 * in use but are slopes of chords; the same moved into the marginals at the load found are exact where an engine's price
 * hangs on no other's. Whichever gives the higher bound serves.
 */
export function candidatePrices(fleet: LpFleet, { groupPriceMs, groupLoadWps }: Found): Float64Array[] {
  const { curves } = fleet.problem;
  const own = new Float64Array(curves.capacityWps.length);
  const moved = new Float64Array(curves.capacityWps.length);
  for (const [index, group] of fleet.groups.entries()) {
    const price = atLeastIdle(fleet, group, groupPriceMs[index]!);
    const load = groupLoadWps[index]! / group.engines.length;
    const isFull = load >= group.capacityWps * FULL;
    const right = isFull ? Number.POSITIVE_INFINITY : marginalAt(curves, group.engine, load);
    const marginal = Math.min(Math.max(price, leftMarginalAt(curves, group.engine, load)), right);
    for (const engine of group.engines) {
      own[engine] = price;
      moved[engine] = marginal;
    }
  }
  return [own, moved];
}

const FULL = 1 - 1e-9;

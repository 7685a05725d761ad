import { objective } from "./bound.ts";
import type { Problem } from "./problem.ts";
import { shedPrice } from "./shed.ts";

/** What a cell's ring does: arcs of the problem with their shares of the served demand, and the fraction shed. */
export interface CellShares {
  readonly arcs: readonly number[];
  readonly shares: readonly number[];
  readonly shed: number;
}

export interface RingCost {
  /** ms per second. */
  readonly objectiveMs: number;
  readonly loadWps: Float64Array;
  /** Work units/s beyond the engines' capacity: the rounding of rings to slots, no more. */
  readonly overWps: number;
  /** What of the cost that part makes, ms per second. */
  readonly overMs: number;
}

/**
 * Cost of the rings' shares. A ring is a whole number of slots, so a full engine may get a little more than it holds;
 * that part is priced as if it were shed at the fleet's highest price, which keeps the cost above that of the best plan.
 */
export function ringCost(problem: Problem, cells: readonly CellShares[]): RingCost {
  const { capacityWps } = problem.curves;
  const flowWps = new Float64Array(problem.arcEngine.length);
  const loadWps = new Float64Array(capacityWps.length);
  const shedWps = new Float64Array(cells.length);
  let dearest = 0;
  for (const [cell, { arcs, shares, shed }] of cells.entries()) {
    const demand = problem.demandWps[cell]!;
    shedWps[cell] = demand * shed;
    dearest = Math.max(dearest, shedPrice(problem, cell, 1));
    for (const [at, arc] of arcs.entries()) {
      const flow = demand * (1 - shed) * shares[at]!;
      flowWps[arc] = flow;
      loadWps[problem.arcEngine[arc]!]! += flow;
    }
  }
  let overWps = 0;
  for (const [engine, load] of loadWps.entries()) overWps += Math.max(0, load - capacityWps[engine]!);
  const overMs = overWps * dearest;
  return { objectiveMs: objective(problem, { flowWps, shedWps, loadWps }) + overMs, loadWps, overWps, overMs };
}

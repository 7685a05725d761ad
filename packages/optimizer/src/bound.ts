import { conjugate, costAt, type EngineCost, engineCost } from "./engine-cost.ts";
import type { Problem } from "./problem.ts";
import { shedCost, shedPrice } from "./shed.ts";

/**
 * The lower bound by weak duality. For any engine prices w ≥ 0, and π_k = min_e(c_ke + w_e) over k's arcs,
 *
 *     F ≥ LB(w) = Σ_k (d_k/J)·Σ_{j<J} min(p_k(j/J), π_k) − Σ_e φ*_e(w_e),   φ*_e(w) = max over 0 ≤ y ≤ U_e of w·y − φ_e(y)
 *
 * J: steps of the shed price. No churn term: the problem has none yet.
 */
export interface LowerBound {
  readonly lowerBoundMs: number;
  /** π_k, ms per unit of work, not yet capped by the shed price; infinite for a cell without an arc. */
  readonly demandPriceMs: Float64Array;
}

/** Flows, sheds and loads in work units/s, as in `Solution`. */
export interface Flows {
  readonly flowWps: Float64Array;
  readonly shedWps: Float64Array;
  readonly loadWps: Float64Array;
}

export interface GapSplit {
  readonly objectiveMs: number;
  readonly lowerBoundMs: number;
  /**
   * F − LB part by part, ms per second, none negative for flows that keep the constraints: by arc z·(c + w − π), by cell
   * π·(d − s) + P(s) − (d/J)·Σ_j min(p_j, π), by engine φ(y) + φ*(w) − w·y.
   */
  readonly arcMs: Float64Array;
  readonly shedMs: Float64Array;
  readonly engineMs: Float64Array;
}

export function engineCosts(problem: Problem): EngineCost[] {
  return Array.from(problem.curves.capacityWps, (_, engine) => engineCost(problem.curves, engine));
}

export function lowerBound(
  problem: Problem,
  priceMs: Float64Array,
  costs: readonly EngineCost[] = engineCosts(problem),
): LowerBound {
  const cells = problem.demandWps.length;
  const demandPriceMs = new Float64Array(cells).fill(Number.POSITIVE_INFINITY);
  let total = 0;
  for (let cell = 0; cell < cells; cell++) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const atMs = problem.arcCostMs[arc]! + priceMs[problem.arcEngine[arc]!]!;
      // An engine without capacity has no price: its arcs can't carry, so they don't bind π.
      if (problem.curves.capacityWps[problem.arcEngine[arc]!]! > 0 && atMs < demandPriceMs[cell]!)
        demandPriceMs[cell] = atMs;
    }
    total += pricedDemand(problem, cell, demandPriceMs[cell]!);
  }
  for (const [engine, cost] of costs.entries()) total -= conjugate(cost, priceMs[engine]!).valueMs;
  return { lowerBoundMs: total, demandPriceMs };
}

/** F, ms per second. */
export function objective(problem: Problem, flows: Flows, costs: readonly EngineCost[] = engineCosts(problem)): number {
  let total = 0;
  for (let arc = 0; arc < problem.arcEngine.length; arc++) total += problem.arcCostMs[arc]! * flows.flowWps[arc]!;
  for (const [engine, cost] of costs.entries()) total += costAt(cost, flows.loadWps[engine]!);
  for (let cell = 0; cell < problem.demandWps.length; cell++) total += shedCost(problem, cell, flows.shedWps[cell]!);
  return total;
}

export function splitGap(problem: Problem, flows: Flows, priceMs: Float64Array): GapSplit {
  const costs = engineCosts(problem);
  const { lowerBoundMs, demandPriceMs } = lowerBound(problem, priceMs, costs);
  const arcMs = new Float64Array(problem.arcEngine.length);
  const shedMs = new Float64Array(problem.demandWps.length);
  for (let cell = 0; cell < shedMs.length; cell++) {
    const demand = problem.demandWps[cell]!;
    const shed = flows.shedWps[cell]!;
    const pi = Math.min(demandPriceMs[cell]!, shedPrice(problem, cell, 1));
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      arcMs[arc] = flows.flowWps[arc]! * (problem.arcCostMs[arc]! + priceMs[problem.arcEngine[arc]!]! - pi);
    shedMs[cell] = pi * (demand - shed) + shedCost(problem, cell, shed) - pricedDemand(problem, cell, pi);
  }
  const engineMs = Float64Array.from(costs, (cost, engine) => {
    const [load, price] = [flows.loadWps[engine]!, priceMs[engine]!];
    return costAt(cost, load) + conjugate(cost, price).valueMs - price * load;
  });
  return { objectiveMs: objective(problem, flows, costs), lowerBoundMs, arcMs, shedMs, engineMs };
}

/** (d/J)·Σ_j min(p_j, π). */
function pricedDemand(problem: Problem, cell: number, pi: number): number {
  const demand = problem.demandWps[cell]!;
  const steps = Math.max(1, problem.shedSteps);
  let total = 0;
  for (let step = 0; step < steps; step++) total += Math.min(shedPrice(problem, cell, step / steps), pi);
  return (demand / steps) * total;
}

import { conjugate, costAt, type EngineCost, engineCost } from "./engine-cost.ts";
import type { Problem } from "./problem.ts";
import { shedCost, shedPrice } from "./shed.ts";

/**
 * The lower bound by weak duality. For any engine prices w, and any π_k ≤ min_e(c_ke + m_ke + w_e) over k's arcs,
 *
 *     F ≥ LB(w) = Σ_k (d_k/J)·Σ_{j<J} min(p_k(j/J), π_k) + Σ_ke ẑ_ke·min(0, c_ke + w_e − π_k) − Σ_e φ*_e(w_e)
 *     φ*_e(w) = max over 0 ≤ y ≤ U_e of w·y − φ_e(y)
 *
 * J: steps of the shed price; m, ẑ: price of a move and the flows it is counted from, both 0 without a churn term. π_k is
 * the lowest that maximises the bound; without churn it is that minimum. Arcs of engines without capacity carry nothing:
 * they don't bind π and have no ẑ.
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
   * F − LB part by part, ms per second, none negative for flows that keep the constraints: by arc
   * z·(c + w − π) + m·(z − ẑ)⁺ − ẑ·min(0, c + w − π), by cell π·(d − s) + P(s) − (d/J)·Σ_j min(p_j, π), by engine
   * φ(y) + φ*(w) − w·y.
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
  const demandPriceMs = new Float64Array(cells);
  let total = 0;
  for (let cell = 0; cell < cells; cell++) {
    const pi = demandPrice(problem, cell, priceMs);
    demandPriceMs[cell] = pi;
    total += pricedDemand(problem, cell, pi) + heldGain(problem, cell, priceMs, pi);
  }
  for (const [engine, cost] of costs.entries()) total -= conjugate(cost, priceMs[engine]!).valueMs;
  return { lowerBoundMs: total, demandPriceMs };
}

/** The same problem without its churn term. */
export function withoutChurn(problem: Problem): Problem {
  const { churn: _, ...rest } = problem;
  return rest;
}

/** π_k. */
function demandPrice(problem: Problem, cell: number, priceMs: Float64Array): number {
  const { arcStart, arcEngine, arcCostMs, curves, churn } = problem;
  let top = Number.POSITIVE_INFINITY;
  const held: { atMs: number; wps: number }[] = [];
  for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
    const engine = arcEngine[arc]!;
    if (!(curves.capacityWps[engine]! > 0)) continue;
    const atMs = arcCostMs[arc]! + priceMs[engine]!;
    if (churn === undefined) {
      if (atMs < top) top = atMs;
      continue;
    }
    top = Math.min(top, atMs + churn.moveMs[arc]!);
    if (churn.referenceWps[arc]! > 0) held.push({ atMs, wps: churn.referenceWps[arc]! });
  }
  if (held.length === 0) return top;
  // As π rises past the c + w of what is held, and past the steps of the shed price, the bound's slope falls; where
  // everything that is demanded is held no more is to be gained.
  held.sort((a, b) => a.atMs - b.atMs);
  const demand = problem.demandWps[cell]!;
  const steps = Math.max(1, problem.shedSteps);
  let slope = demand;
  for (let at = 0, step = 0; ; ) {
    const nextHeld = held[at]?.atMs ?? Number.POSITIVE_INFINITY;
    const nextShed = step < steps ? shedPrice(problem, cell, step / steps) : Number.POSITIVE_INFINITY;
    const next = Math.min(nextHeld, nextShed);
    if (next >= top) return top;
    if (next === nextHeld) slope -= held[at++]!.wps;
    else {
      slope -= demand / steps;
      step++;
    }
    // The weights that ẑ comes from sum to 1 up to rounding.
    if (slope <= demand * 1e-9) return next;
  }
}

/** Σ_e ẑ·min(0, c + w − π), ms per second. */
function heldGain(
  { arcStart, arcEngine, arcCostMs, curves, churn }: Problem,
  cell: number,
  priceMs: Float64Array,
  pi: number,
): number {
  let total = 0;
  if (churn === undefined) return total;
  for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
    const held = churn.referenceWps[arc]!;
    const engine = arcEngine[arc]!;
    if (held > 0 && curves.capacityWps[engine]! > 0)
      total += held * Math.min(0, arcCostMs[arc]! + priceMs[engine]! - pi);
  }
  return total;
}

/** F, ms per second. */
export function objective(problem: Problem, flows: Flows, costs: readonly EngineCost[] = engineCosts(problem)): number {
  let total = 0;
  const { churn } = problem;
  for (let arc = 0; arc < problem.arcEngine.length; arc++) {
    const flow = flows.flowWps[arc]!;
    total += problem.arcCostMs[arc]! * flow;
    if (churn !== undefined) total += churn.moveMs[arc]! * Math.max(0, flow - churn.referenceWps[arc]!);
  }
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
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      const flow = flows.flowWps[arc]!;
      const over = problem.arcCostMs[arc]! + priceMs[engine]! - pi;
      arcMs[arc] = flow * over;
      if (problem.churn === undefined || !(problem.curves.capacityWps[engine]! > 0)) continue;
      const held = problem.churn.referenceWps[arc]!;
      arcMs[arc]! += problem.churn.moveMs[arc]! * Math.max(0, flow - held) - held * Math.min(0, over);
    }
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

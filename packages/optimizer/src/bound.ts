import { conjugate, costAt } from "./engine-cost.ts";
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

export function lowerBound(problem: Problem, priceMs: Float64Array): LowerBound {
  const openMs = openPrices(problem, priceMs);
  const demandPriceMs = cheapest(problem, openMs);
  let total = 0;
  for (let cell = 0; cell < demandPriceMs.length; cell++) {
    if (problem.churn !== undefined) {
      const held = heldArcs(problem, problem.churn, cell, openMs);
      demandPriceMs[cell] = demandPrice(problem, cell, held, demandPriceMs[cell]!);
      for (const { atMs, wps } of held) total += wps * Math.min(0, atMs - demandPriceMs[cell]!);
    }
    total += pricedDemand(problem, cell, demandPriceMs[cell]!);
  }
  for (let engine = 0; engine < priceMs.length; engine++) total -= conjugate(problem.curves, engine, priceMs[engine]!);
  return { lowerBoundMs: total, demandPriceMs };
}

/** The same problem without its churn term. */
export function withoutChurn(problem: Problem): Problem {
  const { churn: _, ...rest } = problem;
  return rest;
}

/** Engine prices, infinite where there is no capacity: what carries nothing binds nothing. */
export function openPrices({ curves }: Problem, priceMs: Float64Array): Float64Array {
  return priceMs.map((price, engine) => (curves.capacityWps[engine]! > 0 ? price : Number.POSITIVE_INFINITY));
}

/** min_e(c + m + w) per cell. Every arc of the fleet is looked at, so nothing else is done here. */
export function cheapest(problem: Problem, openMs: Float64Array): Float64Array {
  const { arcStart, arcEngine, arcCostMs, demandWps, churn } = problem;
  const least = new Float64Array(demandWps.length);
  for (let cell = 0; cell < least.length; cell++) {
    const end = arcStart[cell + 1]!;
    let best = Number.POSITIVE_INFINITY;
    if (churn === undefined) {
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const atMs = arcCostMs[arc]! + openMs[arcEngine[arc]!]!;
        if (atMs < best) best = atMs;
      }
    } else {
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const atMs = arcCostMs[arc]! + churn.moveMs[arc]! + openMs[arcEngine[arc]!]!;
        if (atMs < best) best = atMs;
      }
    }
    least[cell] = best;
  }
  return least;
}

/** Where ẑ > 0: c + w, ms per unit of work, and ẑ, work units/s. */
interface Held {
  readonly atMs: number;
  readonly wps: number;
}

/** The arcs of a cell that moves are counted from, by rising c + w. */
function heldArcs(
  { arcStart, arcEngine, arcCostMs }: Problem,
  { referenceWps }: NonNullable<Problem["churn"]>,
  cell: number,
  openMs: Float64Array,
): Held[] {
  const held: Held[] = [];
  for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
    const wps = referenceWps[arc]!;
    if (!(wps > 0)) continue;
    const atMs = arcCostMs[arc]! + openMs[arcEngine[arc]!]!;
    if (atMs < Number.POSITIVE_INFINITY) held.push({ atMs, wps });
  }
  return held.sort((a, b) => a.atMs - b.atMs);
}

/** π_k with a churn term; `top` is what it may be at most. */
function demandPrice(problem: Problem, cell: number, held: readonly Held[], top: number): number {
  if (held.length === 0) return top;
  // As π rises past the c + w of what is held, and past the steps of the shed price, the bound's slope falls; where
  // everything that is demanded is held no more is to be gained.
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

/** F, ms per second. */
export function objective(problem: Problem, flows: Flows): number {
  const { arcCostMs, churn } = problem;
  const { flowWps } = flows;
  let total = 0;
  // Few arcs of a fleet are in use.
  for (let arc = 0; arc < flowWps.length; arc++) {
    const flow = flowWps[arc]!;
    if (flow === 0) continue;
    total += arcCostMs[arc]! * flow;
    if (churn !== undefined) total += churn.moveMs[arc]! * Math.max(0, flow - churn.referenceWps[arc]!);
  }
  for (let engine = 0; engine < flows.loadWps.length; engine++)
    total += costAt(problem.curves, engine, flows.loadWps[engine]!);
  for (let cell = 0; cell < problem.demandWps.length; cell++) total += shedCost(problem, cell, flows.shedWps[cell]!);
  return total;
}

export function splitGap(problem: Problem, flows: Flows, priceMs: Float64Array): GapSplit {
  const { lowerBoundMs, demandPriceMs } = lowerBound(problem, priceMs);
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
  const engineMs = priceMs.map((price, engine) => {
    const load = flows.loadWps[engine]!;
    return costAt(problem.curves, engine, load) + conjugate(problem.curves, engine, price) - price * load;
  });
  return { objectiveMs: objective(problem, flows), lowerBoundMs, arcMs, shedMs, engineMs };
}

/** (d/J)·Σ_j min(p_j, π). */
function pricedDemand(problem: Problem, cell: number, pi: number): number {
  const demand = problem.demandWps[cell]!;
  if (pi <= problem.shedMs[cell]!) return demand * pi;
  const steps = Math.max(1, problem.shedSteps);
  let total = 0;
  for (let step = 0; step < steps; step++) total += Math.min(shedPrice(problem, cell, step / steps), pi);
  return (demand / steps) * total;
}

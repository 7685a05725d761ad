import { cheapest, openPrices } from "./bound.ts";
import { loadAt } from "./engine-cost.ts";
import type { Problem } from "./problem.ts";
import { shedPrice } from "./shed.ts";

/**
 * Old engine prices for new demand. Demand that rises or falls everywhere moves all prices of a connected part of the
 * fleet together, so each part's are shifted by the one number θ that makes the best bound
 *
 *     LB(θ) = Σ_k (d_k/J)·Σ_j min(p_j, π_k + θ) + held − Σ_e φ*_e(w_e + θ)
 *
 * concave in θ, its slope the demand not yet priced out less what engines would take at w + θ. One pass over the arcs; then
 * each look at a θ costs cells and engines alone, because all c + w of a part move alike.
 */
export function shiftPrices(problem: Problem, priceMs: Float64Array): Float64Array {
  const shifted = Float64Array.from(priceMs);
  const demandPriceMs = cheapest(problem, openPrices(problem, priceMs));
  for (const { cells, engines } of connectedParts(problem)) {
    const slope = (theta: number): number => {
      let total = 0;
      for (const cell of cells)
        total += problem.demandWps[cell]! * partAbove(problem, cell, demandPriceMs[cell]! + theta);
      for (const engine of engines) total -= loadAt(problem.curves, engine, priceMs[engine]! + theta);
      return total;
    };
    let demand = 0;
    for (const cell of cells) demand += problem.demandWps[cell]!;
    const theta = findRoot(slope, demand);
    for (const engine of engines) shifted[engine] = priceMs[engine]! + theta;
  }
  return shifted;
}

/** Part of a cell's demand whose shed price is above π. */
function partAbove(problem: Problem, cell: number, pi: number): number {
  const steps = Math.max(1, problem.shedSteps);
  if (pi < problem.shedMs[cell]!) return 1;
  let above = 0;
  for (let step = steps - 1; step >= 0 && shedPrice(problem, cell, step / steps) > pi; step--) above++;
  return above / steps;
}

/** A slope within this part of the demand is none. */
const FLAT = 1e-9;
/** What the bound may still win, ms per unit of work: at most the slope times what is left of the bracket. */
const ENOUGH_MS = 1e-6;
const MOST_LOOKS = 60;

/** Where a falling function passes through 0: the bracket is doubled until it holds it, then cut by the secant or in half. */
function findRoot(slope: (theta: number) => number, scale: number): number {
  let at = 0;
  let value = slope(0);
  if (Math.abs(value) <= FLAT * scale) return 0;
  let other = 0;
  let otherValue = value;
  let step = value > 0 ? 1 : -1;
  for (let look = 0; look < MOST_LOOKS && value > 0 === otherValue > 0; look++) {
    [at, value] = [other, otherValue];
    other += step;
    otherValue = slope(other);
    step *= 2;
  }
  if (value > 0 === otherValue > 0) return 0;
  for (let look = 0; look < MOST_LOOKS; look++) {
    if (Math.abs(value) <= FLAT * scale || Math.abs((other - at) * value) <= ENOUGH_MS * scale) break;
    const secant = at + ((other - at) * value) / (value - otherValue);
    // Every other look halves, so that steps of the slope can't keep the secant at one end.
    const middle = look % 2 === 0 ? secant : (at + other) / 2;
    const found = slope(middle);
    if (found > 0 === value > 0) [at, value] = [middle, found];
    else [other, otherValue] = [middle, found];
  }
  return Math.abs(value) <= Math.abs(otherValue) ? at : other;
}

/** Cells and engines that arcs connect. Engines without an arc, and cells without one, are parts of their own. */
export function connectedParts({ demandWps, arcStart, arcEngine, curves }: Problem): {
  readonly cells: readonly number[];
  readonly engines: readonly number[];
}[] {
  const leader = Int32Array.from(curves.capacityWps, (_, engine) => engine);
  const find = (engine: number): number => {
    let top = engine;
    while (leader[top] !== top) top = leader[top] = leader[leader[top]!]!;
    return top;
  };
  let left = leader.length;
  for (let cell = 0; cell < demandWps.length && left > 1; cell++) {
    const start = arcStart[cell]!;
    const end = arcStart[cell + 1]!;
    if (start === end) continue;
    const first = find(arcEngine[start]!);
    for (let arc = start + 1; arc < end; arc++) {
      const top = find(arcEngine[arc]!);
      if (top === first) continue;
      leader[top] = first;
      left--;
    }
  }
  const parts = new Map<number, { cells: number[]; engines: number[] }>();
  for (let engine = 0; engine < leader.length; engine++) {
    const top = find(engine);
    const part = parts.get(top);
    if (part === undefined) parts.set(top, { cells: [], engines: [engine] });
    else part.engines.push(engine);
  }
  for (let cell = 0; cell < demandWps.length; cell++)
    if (arcStart[cell]! < arcStart[cell + 1]!) parts.get(find(arcEngine[arcStart[cell]!]!))!.cells.push(cell);
  return [...parts.values()];
}

import { type Knots, valueAt } from "@guidevane/core";
import type { StoredProblem } from "./stored-problem.ts";

/**
 * What a publication's certificate claims, recomputed for `verifyCertificate` in code that the solvers and `plan` do not
 * use: the cost of the rings' shares and the lower bound on any.
 */

/** What one cell does, read from its ring alone. */
export interface Route {
  readonly slots: number;
  readonly shed: number;
  /** By engine number: work units/s. */
  readonly flowWps: ReadonlyMap<number, number>;
}

/**
 * Σ c·z + Σ φ(y) + Σ P(s) + Σ m·(z − ẑ)⁺, and what a ring's rounding puts on a full engine at the highest shed price; ms per
 * second.
 */
export function costOf(stored: StoredProblem, routes: readonly Route[], loads: readonly number[]): number {
  let total = 0;
  let dearest = 0;
  const held = heldFlows(stored);
  for (const [cell, { flowWps, shed }] of routes.entries()) {
    for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++)
      total += stored.arcCostMs[arc]! * (flowWps.get(stored.arcEngine[arc]!) ?? 0);
    if (stored.churn !== undefined) {
      const gained = [...flowWps].map(([engine, flow]) => Math.max(0, flow - (held[cell]!.get(engine) ?? 0)));
      total += stored.churn.moveMs[cell]! * gained.reduce((sum, each) => sum + each, 0);
    }
    for (const { priceMs, part } of shedStepsOf(stored, cell)) {
      const used = Math.min(part.width, Math.max(0, shed - part.from));
      total += stored.demandWps[cell]! * used * priceMs;
      dearest = Math.max(dearest, priceMs);
    }
  }
  for (const [engine, load] of loads.entries()) {
    const capacity = stored.capacityWps[engine]!;
    total += phi(stored, engine, load) + Math.max(0, load - capacity) * dearest;
  }
  return total;
}

/** ẑ by cell, then engine number. */
function heldFlows({ churn, arcStart, arcEngine, cells }: StoredProblem): Map<number, number>[] {
  const flows = cells.map(() => new Map<number, number>());
  let cell = 0;
  for (const [at, arc] of (churn?.arcs ?? []).entries()) {
    if (arc < arcStart[cell]!) cell = 0;
    while (arc >= arcStart[cell + 1]!) cell++;
    flows[cell]!.set(arcEngine[arc]!, churn!.referenceWps[at]!);
  }
  return flows;
}

/**
 * Σ_k max over π ≤ min_e(c + m + w) of [ d_k·Σ_j width·min(p_j, π) + Σ_e ẑ·min(0, c + w − π) ] − Σ_e φ*_e(w_e), ms per
 * second. The bracket is concave and bends only where π meets a step of the shed price or a c + w: its largest value at
 * those is its maximum.
 */
export function boundOf(stored: StoredProblem): number {
  const held = heldFlows(stored);
  let total = 0;
  for (const [cell, demand] of stored.demandWps.entries()) {
    const arcs = Array.from(
      { length: stored.arcStart[cell + 1]! - stored.arcStart[cell]! },
      (_, at) => stored.arcStart[cell]! + at,
    ).filter((arc) => stored.capacityWps[stored.arcEngine[arc]!]! > 0);
    const through = arcs.map((arc) => ({
      ms: stored.arcCostMs[arc]! + stored.priceMs[stored.arcEngine[arc]!]!,
      wps: held[cell]!.get(stored.arcEngine[arc]!) ?? 0,
    }));
    const most = Math.min(...through.map(({ ms }) => ms)) + (stored.churn?.moveMs[cell] ?? 0);
    const steps = shedStepsOf(stored, cell);
    const worth = (price: number): number =>
      steps.reduce((sum, { priceMs, part }) => sum + demand * part.width * Math.min(priceMs, price), 0) +
      through.reduce((sum, { ms, wps }) => (wps > 0 ? sum + wps * Math.min(0, ms - price) : sum), 0);
    const bends = [...steps.map(({ priceMs }) => priceMs), ...through.filter(({ wps }) => wps > 0).map(({ ms }) => ms)];
    total += Math.max(worth(most), ...bends.filter((price) => price < most).map(worth));
  }
  for (const engine of stored.engines.keys()) total -= conjugateOf(stored, engine);
  return total;
}

function shedStepsOf(stored: StoredProblem, cell: number) {
  const steps = Math.max(1, stored.shedSteps);
  return Array.from({ length: steps }, (_, step) => ({
    priceMs: stored.shedMs[cell]! + step * stored.shedStepMs,
    part: { from: step / steps, width: 1 / steps },
  }));
}

/** φ(y) as DESIGN writes it. */
function phi(stored: StoredProblem, engine: number, load: number): number {
  const capacity = stored.capacityWps[engine]!;
  if (capacity === 0) return 0;
  const { headroom, headroomMs } = stored;
  const over = headroom > 0 ? Math.max(0, load / capacity - 1 + headroom) : 0;
  const ramp = headroom > 0 ? ((capacity * headroomMs) / (2 * headroom)) * over ** 2 : 0;
  return load * valueAt(knotsOf(stored, engine), load / capacity) + ramp;
}

/**
 * max of w·y − φ(y) over 0 ≤ y ≤ U. Between breakpoints the function is a parabola, which three of its values give: the
 * largest of the breakpoints' values and of the vertices inside is the answer.
 */
function conjugateOf(stored: StoredProblem, engine: number): number {
  const capacity = stored.capacityWps[engine]!;
  if (capacity === 0) return 0;
  const inside = knotsOf(stored, engine).map(([rho]) => rho);
  const breaks = [0, 1, 1 - stored.headroom, ...inside].filter((rho) => rho >= 0 && rho <= 1).sort((a, b) => a - b);
  const gain = (rho: number) => stored.priceMs[engine]! * rho * capacity - phi(stored, engine, rho * capacity);
  let best = 0;
  for (const [index, right] of breaks.entries()) {
    best = Math.max(best, gain(right));
    const left = breaks[index - 1] ?? 0;
    const half = (right - left) / 2;
    if (half <= 0) continue;
    const [a, b, c] = [gain(left), gain(left + half), gain(right)];
    const bend = a - 2 * b + c;
    if (bend >= 0) continue;
    const vertex = left + half + (half * (a - c)) / (2 * bend);
    if (vertex > left && vertex < right) best = Math.max(best, gain(vertex));
  }
  return best;
}

function knotsOf(stored: StoredProblem, engine: number): Knots {
  return stored.knotRho
    .slice(stored.knotStart[engine], stored.knotStart[engine + 1])
    .map((rho, index) => [rho, stored.knotMs[stored.knotStart[engine]! + index]!] as const);
}

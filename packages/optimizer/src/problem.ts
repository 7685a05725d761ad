import type { CurveSet } from "@guidevane/core";

/**
 * The problem that every solver takes, in units of work so that a class's weight disappears (z_ke = a_k·x_ke):
 *
 *     minimise    Σ_ke c_ke·z_ke + Σ_e φ_e(y_e) + Σ_k P_k(s_k) + Σ_ke m_ke·(z_ke − ẑ_ke)⁺
 *     subject to  Σ_e z_ke + s_k = d_k,   y_e = Σ_k z_ke ≤ U_e,   z, s ≥ 0
 *
 * A pure transportation network with convex sink arcs. Plain columns: it crosses to worker threads and into native code.
 */
export interface Problem {
  /** d_k, work units/s, one per cell: a_k·D_k. */
  readonly demandWps: Float64Array;
  /** Cell k's arcs are `arcStart[k] .. arcStart[k + 1]`; each names an engine that may serve it. Length: cells + 1. */
  readonly arcStart: Uint32Array;
  readonly arcEngine: Uint32Array;
  /** c_ke = n_ke ÷ a_k, ms per unit of work. */
  readonly arcCostMs: Float64Array;
  /** U_e, Q_e and the headroom ramp: φ_e. */
  readonly curves: CurveSet;
  /** Price of the first unit shed, ms per unit of work, one per cell: P₀·(1 + rank). */
  readonly shedMs: Float64Array;
  /** The price rises by this much in each of `shedSteps` equal parts of a cell's demand (DESIGN: 300 ms, 20 steps; 0 = flat). */
  readonly shedStepMs: number;
  readonly shedSteps: number;
  /** ẑ_ke, work units/s, per arc, and m_ke, ms per unit of work: the price of gaining traffic. Absent = no churn term. */
  readonly churn?: { readonly referenceWps: Float64Array; readonly moveMs: Float64Array };
}

/** How a solve ended. Only `solved` and `capped` (best feasible at the deadline) carry flows worth publishing. */
export type SolveStatus = "solved" | "capped" | "timed-out" | "not-finite" | "invalid";

export interface Solution {
  readonly status: SolveStatus;
  /** Says what was wrong, with its value; empty when solved. */
  readonly message: string;
  /** z_ke, work units/s, per arc of the problem. */
  readonly flowWps: Float64Array;
  /** s_k, work units/s, per cell. */
  readonly shedWps: Float64Array;
  /** y_e, work units/s, per engine. */
  readonly loadWps: Float64Array;
  /** w_e, ms per unit of work, per engine: prices that make the lower bound. */
  readonly priceMs: Float64Array;
  /** Value of the objective, ms per second. */
  readonly objectiveMs: number;
  /** Lower bound by weak duality from `priceMs`, same unit. */
  readonly lowerBoundMs: number;
}

/**
 * Latency against load, and the fleet cost that follows from it.
 *
 *     φ(y) = y·Q(y/U) + U·R/(2h)·((y/U − 1 + h)⁺)²          ms of latency per second
 *
 * y: load in work units/s; U: capacity in work units/s; Q: the ms that load adds to one unit of work, piecewise linear in
 * utilisation ρ = y/U; h, R: the headroom ramp, whose marginal cost goes from 0 at (1 − h)·U to R at U. φ is convex when
 * Q is convex and non-decreasing. This file is the twin of `native/crates/core/src/curve.rs`; the two run the same
 * operations in the same order.
 */

/** Knots of a curve, `[utilisation, ms]`, rising in utilisation. */
export type Knots = readonly (readonly [number, number])[];

/** Value of a piecewise-linear curve. Beyond the last knot its slope goes on; before the first it is flat. */
export function valueAt(knots: Knots, utilisation: number): number {
  const first = knots[0];
  if (first === undefined) return 0;
  if (utilisation <= first[0]) return first[1];
  let left = first;
  let right = first;
  for (let i = 1; i < knots.length; i++) {
    left = knots[i - 1]!;
    right = knots[i]!;
    if (utilisation <= right[0]) break;
  }
  if (right === left) return first[1];
  return left[1] + ((right[1] - left[1]) / (right[0] - left[0])) * (utilisation - left[0]);
}

/** The curves of many engines as columns, so that they cross into native code without a copy. */
export interface CurveSet {
  /** U, work units/s, one per engine. 0 = the engine takes no load. */
  readonly capacityWps: Float64Array;
  /** Engine i's knots are `knotRho[knotStart[i] .. knotStart[i + 1]]`. Length: engines + 1. At least one knot each. */
  readonly knotStart: Uint32Array;
  /** Utilisation of each knot; each engine's first is 0 and they rise. */
  readonly knotRho: Float64Array;
  /** Q at each knot, ms per unit of work. */
  readonly knotMs: Float64Array;
  /** h, the part of the capacity that the ramp covers; 0 = no ramp. */
  readonly headroom: number;
  /** R, ms: marginal cost of the ramp at full load. */
  readonly headroomMs: number;
}

/** Where `evaluateCurves` writes, one entry per engine. */
export interface CurveValues {
  /** φ(y), ms per second. */
  readonly value: Float64Array;
  /** φ′(y) from the right, ms per unit of work. */
  readonly slope: Float64Array;
  /** φ″(y) from the right, ms·s per unit of work squared. */
  readonly curvature: Float64Array;
}

/** φ, φ′ and φ″ of every engine at its load, work units/s. An engine without capacity gets zeros. Never throws. */
export function evaluateCurves(curves: CurveSet, loadWps: Float64Array, out: CurveValues): void {
  const { capacityWps, knotStart, knotRho, knotMs, headroom, headroomMs } = curves;
  for (let engine = 0; engine < capacityWps.length; engine++) {
    const capacity = capacityWps[engine]!;
    if (!(capacity > 0)) {
      out.value[engine] = 0;
      out.slope[engine] = 0;
      out.curvature[engine] = 0;
      continue;
    }
    const load = loadWps[engine]!;
    const rho = load / capacity;
    // The last knot at or left of rho: at a knot the slope is the one to its right.
    const start = knotStart[engine]!;
    const end = knotStart[engine + 1]!;
    let at = start;
    while (at + 1 < end && knotRho[at + 1]! <= rho) at++;
    let slopeQ = 0;
    if (end - start > 1) {
      const left = at + 1 < end ? at : at - 1;
      slopeQ = (knotMs[left + 1]! - knotMs[left]!) / (knotRho[left + 1]! - knotRho[left]!);
    }
    const q = knotMs[at]! + slopeQ * (rho - knotRho[at]!);
    let value = load * q;
    let slope = q + rho * slopeQ;
    let curvature = (2 * slopeQ) / capacity;
    const over = rho - 1 + headroom;
    if (headroom > 0 && over >= 0) {
      value += ((capacity * headroomMs) / (2 * headroom)) * (over * over);
      slope += (headroomMs / headroom) * over;
      curvature += headroomMs / (headroom * capacity);
    }
    out.value[engine] = value;
    out.slope[engine] = slope;
    out.curvature[engine] = curvature;
  }
}

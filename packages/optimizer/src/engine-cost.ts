import type { CurveSet } from "@guidevane/core";

/**
 * φ of one engine, straight from its columns (the formula is in core's `curve.ts`). It is a piecewise quadratic in the
 * load, with bends at the knots of Q and where the headroom ramp begins: values, one-sided marginals and the conjugate are
 * exact. The marginal never falls, and jumps up at a knot. An engine without capacity costs nothing and takes nothing.
 *
 * The twin of `native/crates/core/src/simplex/certificate.rs` as far as `conjugate` and `costAt` go: the same operations in
 * the same order.
 */

/** φ(y), ms per second; beyond the capacity the last piece goes on. */
export function costAt(curves: CurveSet, engine: number, loadWps: number): number {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0)) return 0;
  return valueAt(curves, knotAt(curves, engine, loadWps), engine, loadWps / capacity, loadWps);
}

/** φ′(y) from the right, ms per unit of work. */
export function marginalAt(curves: CurveSet, engine: number, loadWps: number): number {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0)) return 0;
  return slopeAt(curves, knotAt(curves, engine, loadWps), engine, loadWps / capacity);
}

/** φ′(y) from the left, ms per unit of work; at 0 −∞: no price is too low for an idle engine. */
export function leftMarginalAt(curves: CurveSet, engine: number, loadWps: number): number {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0) || !(loadWps > 0)) return Number.NEGATIVE_INFINITY;
  let knot = knotAt(curves, engine, loadWps);
  if (curves.knotRho[knot]! * capacity >= loadWps && knot > curves.knotStart[engine]!) knot--;
  return slopeAt(curves, knot, engine, loadWps / capacity);
}

/** The load at which φ* is attained: φ′⁻¹(w), held to 0 … U, work units/s. */
export function loadAt(curves: CurveSet, engine: number, priceMs: number): number {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0)) return 0;
  const knot = knotBelow(curves, engine, priceMs);
  return knot < 0 ? 0 : capacity * rhoAt(curves, knot, engine, priceMs);
}

/** φ*(w) = max of w·y − φ(y) over 0 ≤ y ≤ U, ms per second. */
export function conjugate(curves: CurveSet, engine: number, priceMs: number): number {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0)) return 0;
  const knot = knotBelow(curves, engine, priceMs);
  if (knot < 0) return 0;
  const rho = rhoAt(curves, knot, engine, priceMs);
  const loadWps = capacity * rho;
  return priceMs * loadWps - valueAt(curves, knot, engine, rho, loadWps);
}

/** Loads at which the marginal jumps or bends: the knots below the capacity and the ramp's start, rising from 0. */
export function kinksOf(curves: CurveSet, engine: number): number[] {
  const capacity = curves.capacityWps[engine]!;
  if (!(capacity > 0)) return [];
  const rhos = new Set(curves.knotRho.subarray(curves.knotStart[engine]!, curves.knotStart[engine + 1]!));
  if (curves.headroom > 0 && curves.headroomMs > 0) rhos.add(1 - curves.headroom);
  return [...rhos]
    .filter((rho) => rho < 1)
    .sort((a, b) => a - b)
    .map((rho) => rho * capacity);
}

/** The last knot at or left of a load. Loads are compared, not utilisations: a load on a knot is its ρ·U to the last bit. */
function knotAt({ capacityWps, knotStart, knotRho }: CurveSet, engine: number, loadWps: number): number {
  const capacity = capacityWps[engine]!;
  let low = knotStart[engine]!;
  let high = knotStart[engine + 1]!;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (knotRho[middle]! * capacity <= loadWps) low = middle;
    else high = middle;
  }
  return low;
}

/** The last knot below full load whose marginal from the right is under a price; −1 where there is none. */
function knotBelow(curves: CurveSet, engine: number, priceMs: number): number {
  let low = curves.knotStart[engine]! - 1;
  let high = curves.knotStart[engine + 1]!;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    const rho = curves.knotRho[middle]!;
    if (rho < 1 && slopeAt(curves, middle, engine, rho) < priceMs) low = middle;
    else high = middle;
  }
  return low < curves.knotStart[engine]! ? -1 : low;
}

/** The utilisation right of a knot, up to the next one or full load, at which the marginal meets a price. */
function rhoAt(curves: CurveSet, knot: number, engine: number, priceMs: number): number {
  const { knotStart, knotRho, knotMs, headroom, headroomMs } = curves;
  const end = knot + 1 < knotStart[engine + 1]! ? Math.min(1, knotRho[knot + 1]!) : 1;
  const rise = riseAt(curves, knot, engine);
  // Before the ramp the marginal is flat + 2·rise·ρ; in it, steeper by R/h from 1 − h on.
  const flat = knotMs[knot]! - rise * knotRho[knot]!;
  const before = rise > 0 ? (priceMs - flat) / (2 * rise) : Number.POSITIVE_INFINITY;
  if (!(headroom > 0) || before <= 1 - headroom) return Math.min(before, end);
  const ramp = headroomMs / headroom;
  const slope = 2 * rise + ramp;
  const within = slope > 0 ? (priceMs - flat + ramp * (1 - headroom)) / slope : Number.POSITIVE_INFINITY;
  return Math.min(within, end);
}

/** φ at ρ = y/U in the piece right of a knot. */
function valueAt(curves: CurveSet, knot: number, engine: number, rho: number, loadWps: number): number {
  const { capacityWps, knotRho, knotMs, headroom, headroomMs } = curves;
  const value = loadWps * (knotMs[knot]! + riseAt(curves, knot, engine) * (rho - knotRho[knot]!));
  const over = rho - 1 + headroom;
  if (!(headroom > 0) || over <= 0) return value;
  return value + ((capacityWps[engine]! * headroomMs) / (2 * headroom)) * (over * over);
}

/** φ′ at ρ in the piece right of a knot. */
function slopeAt(curves: CurveSet, knot: number, engine: number, rho: number): number {
  const { knotRho, knotMs, headroom, headroomMs } = curves;
  const rise = riseAt(curves, knot, engine);
  const slope = knotMs[knot]! + rise * (rho - knotRho[knot]!) + rho * rise;
  const over = rho - 1 + headroom;
  return headroom > 0 && over > 0 ? slope + (headroomMs / headroom) * over : slope;
}

/** Q′ right of a knot; beyond the last knot the slope goes on, and one knot alone is flat. */
function riseAt({ knotStart, knotRho, knotMs }: CurveSet, knot: number, engine: number): number {
  let left = knot;
  if (knot + 1 === knotStart[engine + 1]!) {
    if (knot === knotStart[engine]!) return 0;
    left = knot - 1;
  }
  return (knotMs[left + 1]! - knotMs[left]!) / (knotRho[left + 1]! - knotRho[left]!);
}

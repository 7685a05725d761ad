import type { CurveSet } from "@guidevane/core";

/**
 * φ of one engine as what it is, a piecewise quadratic (the formula is in core's `curve.ts`): on each piece
 *
 *     φ(y) = valueMs + slopeMs·t + bend·t²/2,   t = y − fromWps
 *
 * so that values, one-sided marginals and the conjugate are exact. The marginal φ′ never falls from piece to piece and
 * jumps up where Q has a knot.
 */
export interface CostPiece {
  /** The piece reaches from here to the next piece's start, the last one to the capacity and, where asked, beyond. */
  readonly fromWps: number;
  /** φ, ms per second, at `fromWps`. */
  readonly valueMs: number;
  /** φ′ from the right, ms per unit of work, at `fromWps`. */
  readonly slopeMs: number;
  /** φ″ on the piece. */
  readonly bend: number;
}

export interface EngineCost {
  readonly capacityWps: number;
  /** Empty for an engine without capacity. */
  readonly pieces: readonly CostPiece[];
}

export function engineCost(curves: CurveSet, engine: number): EngineCost {
  const capacityWps = curves.capacityWps[engine]!;
  if (!(capacityWps > 0)) return { capacityWps: 0, pieces: [] };
  const { headroom, headroomMs } = curves;
  const rampRho = headroom > 0 && headroomMs > 0 ? 1 - headroom : 1;
  const start = curves.knotStart[engine]!;
  const end = curves.knotStart[engine + 1]!;
  const rhos: number[] = [];
  // Knots rise and the first is at 0: only the ramp's start has to find its place.
  for (let knot = start; knot < end; knot++) {
    const rho = curves.knotRho[knot]!;
    const last = rhos.at(-1) ?? -1;
    if (rampRho > last && rampRho < rho && rampRho < 1) rhos.push(rampRho);
    if (rho < 1) rhos.push(rho);
  }
  if (rampRho < 1 && rampRho > (rhos.at(-1) ?? -1)) rhos.push(rampRho);
  const pieces: CostPiece[] = [];
  let knot = start;
  for (const [index, rho] of rhos.entries()) {
    if (index > 0 && rho === rhos[index - 1]) continue;
    while (knot + 1 < end && curves.knotRho[knot + 1]! <= rho) knot++;
    const left = knot + 1 < end ? knot : knot - 1;
    const rise =
      end - start > 1
        ? (curves.knotMs[left + 1]! - curves.knotMs[left]!) / (curves.knotRho[left + 1]! - curves.knotRho[left]!)
        : 0;
    const q = curves.knotMs[knot]! + rise * (rho - curves.knotRho[knot]!);
    const over = rho - rampRho;
    const ramp = over >= 0 && rampRho < 1 ? headroomMs / headroom : 0;
    pieces.push({
      fromWps: rho * capacityWps,
      valueMs: capacityWps * (rho * q + (ramp * over * over) / 2),
      slopeMs: q + rho * rise + ramp * over,
      bend: (2 * rise + ramp) / capacityWps,
    });
  }
  return { capacityWps, pieces };
}

/** φ(y), ms per second; beyond the capacity the last piece goes on. */
export function costAt({ pieces }: EngineCost, loadWps: number): number {
  const piece = pieceAt(pieces, loadWps);
  if (piece === undefined) return 0;
  const t = loadWps - piece.fromWps;
  return piece.valueMs + (piece.slopeMs + (piece.bend * t) / 2) * t;
}

/** φ′(y) from the right, ms per unit of work. */
export function marginalAt({ pieces }: EngineCost, loadWps: number): number {
  const piece = pieceAt(pieces, loadWps);
  return piece === undefined ? 0 : piece.slopeMs + piece.bend * (loadWps - piece.fromWps);
}

/** φ′(y) from the left, ms per unit of work; at 0 −∞: no price is too low for an idle engine. */
export function leftMarginalAt({ pieces }: EngineCost, loadWps: number): number {
  const piece = pieces.findLast(({ fromWps }) => fromWps < loadWps);
  return piece === undefined ? Number.NEGATIVE_INFINITY : piece.slopeMs + piece.bend * (loadWps - piece.fromWps);
}

/** The load at which φ* is attained: φ′⁻¹(w), held to 0 … U. */
export function loadAt({ pieces, capacityWps }: EngineCost, priceMs: number): number {
  let loadWps = 0;
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index]!;
    if (priceMs <= piece.slopeMs) break;
    const toWps = pieces[index + 1]?.fromWps ?? capacityWps;
    loadWps = toWps;
    const reach = piece.bend > 0 ? piece.fromWps + (priceMs - piece.slopeMs) / piece.bend : Number.POSITIVE_INFINITY;
    if (reach < toWps) return reach;
  }
  return loadWps;
}

/** φ*(w) = max of w·y − φ(y) over 0 ≤ y ≤ U, ms per second, and the load that attains it. */
export function conjugate(cost: EngineCost, priceMs: number): { valueMs: number; loadWps: number } {
  const loadWps = loadAt(cost, priceMs);
  return { valueMs: priceMs * loadWps - costAt(cost, loadWps), loadWps };
}

function pieceAt(pieces: readonly CostPiece[], loadWps: number): CostPiece | undefined {
  let found = pieces[0];
  for (const piece of pieces) {
    if (piece.fromWps > loadWps) break;
    found = piece;
  }
  return found;
}

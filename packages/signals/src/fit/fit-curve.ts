import { type Knots, valueAt } from "@guidevane/core";
import type { LoadCurve, LoadPoint } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";

/**
 * Latency against utilisation, from measured load levels.
 *
 * 1. Against requests in flight n both times are well described by T(n) = w₀ + w₁·√n + w₂·n, w ≥ 0 (least squares of
 *    relative errors): a batch's step grows with it, its prefills queue.
 * 2. By Little's law the rate is X(n) = n / (TTFT(n) + outputTokens·TBOT(n)); w₂ makes it level off.
 * 3. The parametric curve (X(n), T(n)), with the measured points on it, is fitted again, against utilisation X/capacity, by
 *    a constant, a slope and hinges with coefficients of 0 or more: convex and non-decreasing by construction.
 *
 * The step in between is what carries information from level to level: the third alone errs twice as much at a level that
 * was left out. Taking the lower convex hull of the second instead of fitting lies below the points.
 */
export interface FittedCurve {
  /** Requests/s at utilisation 1. */
  readonly capacityRps: number;
  /** Of the workload measured, against utilisation. */
  readonly ttftMs: Knots;
  readonly tbotMs: Knots;
  /** Null where no p99 was measured. */
  readonly ttftP99Ms: Knots | null;
  /** Utilisations between which the engine was measured; what is said outside is extrapolated. */
  readonly measured: { readonly from: number; readonly to: number };
}

/** Fewest load levels that a fit is made from: the model has three coefficients. */
export const LEVELS_MIN = 3;

/**
 * Utilisations of the knots: closer where curves bend. The fit of one curve reads as well with more of them, and a person
 * reads these.
 */
const KNOTS: readonly number[] = [0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96, 1];
/** Samples of the curve between what was measured and a little beyond on both sides. */
const SAMPLES = 40;
/** Load levels mostly double: half of the least and twice the most are one level further. */
const BEYOND = 2;
/** The capacity is where one level more would bring the rate, and no more than this times the highest rate measured. */
const CAPACITY_BEYOND = 1.25;

/** @throws RangeError on fewer points than `LEVELS_MIN` */
export function fitCurve({ points, outputTokens }: Pick<LoadCurve, "points" | "outputTokens">): FittedCurve {
  if (points.length < LEVELS_MIN)
    throw new RangeError(`a curve needs ${LEVELS_MIN} load levels, this one has ${points.length}`);
  const ttft = fitAgainstInFlight(points, ({ ttftMs }) => ttftMs);
  const tbot = fitAgainstInFlight(points, ({ tbotMs }) => tbotMs);
  const rateAt = (inFlight: number): number => (1000 * inFlight) / (ttft(inFlight) + outputTokens * tbot(inFlight));

  const least = points[0]!.inFlight;
  const most = points[points.length - 1]!.inFlight;
  const capacityRps = Math.min(rateAt(most * BEYOND), CAPACITY_BEYOND * rateAt(most));
  const from = least / BEYOND;
  const step = ((most * BEYOND) / from) ** (1 / (SAMPLES - 1));
  const sampled = Array.from({ length: SAMPLES }, (_, i) => from * step ** i).map((inFlight) => ({
    utilisation: rateAt(inFlight) / capacityRps,
    inFlight,
  }));
  const convex = (model: (inFlight: number) => number, of: (point: LoadPoint) => number | null): Knots =>
    fitConvex([
      ...sampled.map(({ utilisation, inFlight }) => ({ utilisation, ms: model(inFlight) })),
      ...points.map((point) => ({ utilisation: point.ratePerS / capacityRps, ms: of(point) ?? Number.NaN })),
    ]);
  const withP99 = points.filter(({ ttftP99Ms }) => ttftP99Ms !== null);
  return {
    capacityRps,
    ttftMs: convex(ttft, ({ ttftMs }) => ttftMs),
    tbotMs: convex(tbot, ({ tbotMs }) => tbotMs),
    ttftP99Ms:
      withP99.length < LEVELS_MIN
        ? null
        : convex(
            fitAgainstInFlight(withP99, ({ ttftP99Ms }) => ttftP99Ms!),
            ({ ttftP99Ms }) => ttftP99Ms,
          ),
    measured: {
      from: Math.min(...points.map(({ ratePerS }) => ratePerS)) / capacityRps,
      to: Math.min(1, Math.max(...points.map(({ ratePerS }) => ratePerS)) / capacityRps),
    },
  };
}

export interface Prediction {
  readonly utilisation: number;
  readonly ttftMs: number;
  readonly tbotMs: number;
  /** Of a whole answer. */
  readonly e2eMs: number;
  readonly ttftP99Ms: number | null;
  /** The load is outside of what was measured. */
  readonly extrapolated: boolean;
}

/** What a fitted curve says of a load given as requests in flight: by Little's law, solved by halving. */
export function predictAtInFlight(curve: FittedCurve, outputTokens: number, inFlight: number): Prediction {
  const at = (utilisation: number): Prediction => {
    const ttftMs = valueAt(curve.ttftMs, utilisation);
    const tbotMs = valueAt(curve.tbotMs, utilisation);
    const ttftP99Ms = curve.ttftP99Ms === null ? null : valueAt(curve.ttftP99Ms, utilisation);
    const extrapolated = utilisation < curve.measured.from - EDGE || utilisation > curve.measured.to + EDGE;
    return { utilisation, ttftMs, tbotMs, e2eMs: ttftMs + outputTokens * tbotMs, ttftP99Ms, extrapolated };
  };
  let low = 0;
  let high = 1;
  const inFlightAt = (utilisation: number): number => (utilisation * curve.capacityRps * at(utilisation).e2eMs) / 1000;
  while (inFlightAt(high) < inFlight) high *= 2;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (inFlightAt(middle) < inFlight) low = middle;
    else high = middle;
  }
  return at(high);
}

/** A level that was measured is put by the fit a little beside its own utilisation. */
const EDGE = 0.02;
/** To a part in a billion of the capacity. */
const HALVINGS = 40;

function fitAgainstInFlight(points: readonly LoadPoint[], of: (point: LoadPoint) => number): (n: number) => number {
  const features = (n: number): number[] => [1, Math.sqrt(n), n];
  const weights = nonNegativeLeastSquares(
    points.map((point) => features(point.inFlight).map((feature) => feature / of(point))),
  );
  return (n) => features(n).reduce((sum, feature, i) => sum + weights[i]! * feature, 0);
}

function fitConvex(samples: readonly { readonly utilisation: number; readonly ms: number }[]): Knots {
  const hinges = KNOTS.slice(0, -1);
  const features = (utilisation: number): number[] => [1, ...hinges.map((knot) => Math.max(0, utilisation - knot))];
  const within = samples.filter(({ utilisation, ms }) => utilisation <= 1 + 1e-9 && Number.isFinite(ms));
  const weights = nonNegativeLeastSquares(
    within.map(({ utilisation, ms }) => features(utilisation).map((feature) => feature / ms)),
  );
  return KNOTS.map((knot) => [knot, features(knot).reduce((sum, feature, i) => sum + weights[i]! * feature, 0)]);
}

import { type Knots, valueAt } from "@guidevane/core";
import type { LoadPoint } from "./load-curve.ts";
import { loadModel, type Measured } from "./load-model.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";

/**
 * Latency against utilisation, from measured load levels: a model of how times go with load (`load-model.ts`), and its samples,
 * with the measured points, fitted again, against utilisation, by a constant, a slope and hinges with coefficients of 0 or
 * more: convex and non-decreasing by construction.
 *
 * The model is what carries information from level to level: the second step alone errs twice as much at a level that was
 * left out. Taking the lower convex hull of the first instead of fitting lies below the points.
 */
export interface FittedCurve {
  /** Requests/s at utilisation 1. */
  readonly capacityRps: number;
  /** Of the workload measured, against utilisation. */
  readonly ttftMs: Knots;
  readonly tbotMs: Knots;
  /** Null where they were not measured. */
  readonly ttftP50Ms: Knots | null;
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

/**
 * @param saturationRps the most that the engine was seen to do with more requests at hand; null = it was not seen
 * @throws RangeError on fewer points than `LEVELS_MIN`
 */
export function fitCurve(curve: Measured, saturationRps: number | null = null): FittedCurve {
  const { points } = curve;
  if (points.length < LEVELS_MIN)
    throw new RangeError(`a curve needs ${LEVELS_MIN} load levels, this one has ${points.length}`);
  const { capacityRps, samples, timesOf } = loadModel(curve, saturationRps);
  const convex = (measured: readonly LoadPoint[], of: (point: LoadPoint) => number): Knots => {
    const model = timesOf(measured, of);
    return fitConvex([
      ...samples.map(({ utilisation, load }) => ({ utilisation, ms: model(load) })),
      ...measured.map((point) => ({ utilisation: point.ratePerS / capacityRps, ms: of(point) })),
    ]);
  };
  const percentile = (name: "ttftP50Ms" | "ttftP99Ms"): Knots | null => {
    const known = points.filter((point) => point[name] !== null);
    return known.length < LEVELS_MIN ? null : convex(known, (point) => point[name]!);
  };
  return {
    capacityRps,
    ttftMs: convex(points, ({ ttftMs }) => ttftMs),
    tbotMs: convex(points, ({ tbotMs }) => tbotMs),
    ttftP50Ms: percentile("ttftP50Ms"),
    ttftP99Ms: percentile("ttftP99Ms"),
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
  readonly ttftP50Ms: number | null;
  readonly ttftP99Ms: number | null;
  /** The load is outside of what was measured. */
  readonly extrapolated: boolean;
}

/** What a fitted curve says of a load given as a rate. */
export function predictAtRate(curve: FittedCurve, outputTokens: number, ratePerS: number): Prediction {
  return predictAt(curve, outputTokens, ratePerS / curve.capacityRps);
}

/** What a fitted curve says of a load given as requests in flight: by Little's law, solved by halving. */
export function predictAtInFlight(curve: FittedCurve, outputTokens: number, inFlight: number): Prediction {
  let low = 0;
  let high = 1;
  const inFlightAt = (utilisation: number): number =>
    (utilisation * curve.capacityRps * predictAt(curve, outputTokens, utilisation).e2eMs) / 1000;
  while (inFlightAt(high) < inFlight) high *= 2;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (inFlightAt(middle) < inFlight) low = middle;
    else high = middle;
  }
  return predictAt(curve, outputTokens, high);
}

function predictAt(curve: FittedCurve, outputTokens: number, utilisation: number): Prediction {
  const ttftMs = valueAt(curve.ttftMs, utilisation);
  const tbotMs = valueAt(curve.tbotMs, utilisation);
  const percentile = (knots: Knots | null): number | null => (knots === null ? null : valueAt(knots, utilisation));
  const [ttftP50Ms, ttftP99Ms] = [percentile(curve.ttftP50Ms), percentile(curve.ttftP99Ms)];
  const extrapolated = utilisation < curve.measured.from - EDGE || utilisation > curve.measured.to + EDGE;
  const e2eMs = ttftMs + outputTokens * tbotMs;
  return { utilisation, ttftMs, tbotMs, e2eMs, ttftP50Ms, ttftP99Ms, extrapolated };
}

/** A level that was measured is put by the fit a little beside its own utilisation. */
const EDGE = 0.02;
/** To a part in a billion of the capacity. */
const HALVINGS = 40;

function fitConvex(samples: readonly { readonly utilisation: number; readonly ms: number }[]): Knots {
  const hinges = KNOTS.slice(0, -1);
  const features = (utilisation: number): number[] => [1, ...hinges.map((knot) => Math.max(0, utilisation - knot))];
  const within = samples.filter(({ utilisation }) => utilisation <= 1 + 1e-9);
  const weights = nonNegativeLeastSquares(
    within.map(({ utilisation, ms }) => features(utilisation).map((feature) => feature / ms)),
  );
  return KNOTS.map((knot) => [knot, features(knot).reduce((sum, feature, i) => sum + weights[i]! * feature, 0)]);
}

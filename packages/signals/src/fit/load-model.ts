import type { LoadCurve, LoadPoint } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";

/** How times go with load: what carries information from level to level before the shape is fixed (`fit-curve.ts`). */
export interface LoadModel {
  /** Requests/s at utilisation 1. */
  readonly capacityRps: number;
  /** Loads between what was measured and a little beyond, as `timesOf` takes them. */
  readonly samples: readonly { readonly load: number; readonly utilisation: number }[];
  /** A time against load, by least squares of relative errors over the points. */
  timesOf(points: readonly LoadPoint[], of: (point: LoadPoint) => number): (load: number) => number;
}

export type Measured = Pick<LoadCurve, "points" | "outputTokens" | "loop">;

/** @param saturationRps the most that the engine was seen to do with more requests at hand; null = it was not seen */
export function loadModel(curve: Measured, saturationRps: number | null): LoadModel {
  return curve.loop === "closed" ? closedModel(curve, saturationRps) : openModel(curve, saturationRps);
}

const ALONE = 1;
const SAMPLES = 40;
/** Load levels mostly double: half of the least and twice the most are one level further. */
const BEYOND = 2;
/** The capacity is no more than this times the highest rate measured. */
const CAPACITY_BEYOND = 1.25;

/**
 * Against requests in flight: T(n) = w₀ + w₁·√n + w₂·n, w ≥ 0, for a batch's step grows with it and its prefills queue. The
 * rate X(n) = n / (TTFT(n) + outputTokens·TBOT(n)) follows by Little's law; w₂ makes it level off, and the capacity is where
 * one level more would bring it.
 */
function closedModel({ points, outputTokens }: Measured, saturationRps: number | null): LoadModel {
  const timesOf: LoadModel["timesOf"] = (measured, of) =>
    fitted(
      measured.map((point) => ({ load: point.inFlight, ms: of(point) })),
      inFlightFeatures,
    );
  const ttft = timesOf(points, ({ ttftMs }) => ttftMs);
  const tbot = timesOf(points, ({ tbotMs }) => tbotMs);
  const rateAt = (inFlight: number): number => (1000 * inFlight) / (ttft(inFlight) + outputTokens * tbot(inFlight));
  const most = points[points.length - 1]!.inFlight;
  const capacityRps = saturationRps ?? Math.min(rateAt(most * BEYOND), CAPACITY_BEYOND * rateAt(most));
  const least = Math.max(ALONE, points[0]!.inFlight / BEYOND);
  const samples = spaced(least, most * BEYOND).map((load) => ({ load, utilisation: rateAt(load) / capacityRps }));
  // However seldom requests come, each one is there itself.
  return { capacityRps, samples: [{ load: ALONE, utilisation: 0 }, ...samples], timesOf };
}

/** What times in a closed loop are made of. */
export function inFlightFeatures(inFlight: number): number[] {
  return [1, Math.sqrt(inFlight), inFlight];
}

/**
 * Against the rate offered: T(u) = w₀ + w₁·u + w₂·u² + w₃·u/(1 − u), w ≥ 0, u = rate ÷ capacity, for arrivals that nobody
 * holds back queue without limit as the capacity is neared. The capacity is the one with which TTFT is met best.
 */
function openModel({ points }: Measured, saturationRps: number | null): LoadModel {
  const most = Math.max(...points.map(({ ratePerS }) => ratePerS));
  const withCapacity =
    (capacityRps: number): LoadModel["timesOf"] =>
    (measured, of) =>
      fitted(
        measured.map((point) => ({ load: point.ratePerS / capacityRps, ms: of(point) })),
        (u) => [1, u, u * u, u / (1 - Math.min(u, NEAREST_TO_FULL))],
      );
  const errorOf = (capacityRps: number): number => {
    const ttft = withCapacity(capacityRps)(points, ({ ttftMs }) => ttftMs);
    return points.reduce((sum, { ratePerS, ttftMs }) => sum + (ttft(ratePerS / capacityRps) / ttftMs - 1) ** 2, 0);
  };
  const candidates = spaced(most * CAPACITY_LEAST, most * CAPACITY_BEYOND).map((capacityRps) => ({
    capacityRps,
    error: errorOf(capacityRps),
  }));
  const capacityRps =
    saturationRps ?? candidates.reduce((best, each) => (each.error < best.error ? each : best)).capacityRps;
  const samples = spaced(points[0]!.ratePerS / capacityRps / BEYOND, SAMPLED_TO).map((utilisation) => ({
    load: utilisation,
    utilisation,
  }));
  return { capacityRps, samples, timesOf: withCapacity(capacityRps) };
}

const CAPACITY_LEAST = 1.01;
/** Beyond, the queue's term says more of its pole than of an engine. */
const NEAREST_TO_FULL = 0.98;
const SAMPLED_TO = 0.97;

/** Geometrically spaced, both ends among them. */
function spaced(from: number, to: number): number[] {
  const step = (to / from) ** (1 / (SAMPLES - 1));
  return Array.from({ length: SAMPLES }, (_, i) => from * step ** i);
}

function fitted(
  measured: readonly { readonly load: number; readonly ms: number }[],
  features: (load: number) => number[],
): (load: number) => number {
  const weights = nonNegativeLeastSquares(
    measured.map(({ load, ms }) => features(load).map((feature) => feature / ms)),
  );
  return (load) => features(load).reduce((sum, feature, i) => sum + weights[i]! * feature, 0);
}

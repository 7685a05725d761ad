import { LEVELS_MIN } from "./fit-curve.ts";
import type { LoadCurve, LoadPoint } from "./load-curve.ts";

/** A rate is no higher when it is not by more than this: repeated measurements of one level differ by 1.7 %. */
const SAME_RATE = 0.02;
/** Levels this much apart in requests in flight are told apart. */
const MORE_IN_FLIGHT = 1.2;

/** A curve up to its saturation. */
export interface Unsaturated {
  readonly curve: LoadCurve;
  /** The most that the engine did, requests/s; null where every level brought more than the one before. */
  readonly saturationRps: number | null;
  /** Levels beyond. */
  readonly past: readonly LoadPoint[];
}

/**
 * Past the load at which an engine does the most, more requests in flight wait or thrash its memory: what they take is no matter
 * of utilisation, and no plan goes there. Where enough levels are left, these are left out: in a closed loop those past the
 * first that reaches the highest rate, in an open one those of which fewer finish than are sent.
 */
export function upToSaturation(curve: LoadCurve): Unsaturated {
  const { points } = curve;
  const isPast = curve.loop === "closed" ? pastPeak(points) : isBeyond;
  const past = points.filter(isPast);
  const saturationRps = past.length === 0 ? null : Math.max(...points.map(({ ratePerS }) => ratePerS));
  if (past.length === 0 || points.length - past.length < (curve.loop === "closed" ? LEVELS_MIN + 1 : LEVELS_MIN))
    return { curve, saturationRps, past: [] };
  return { curve: { ...curve, points: points.filter((point, at) => !isPast(point, at)) }, saturationRps, past };
}

function pastPeak(points: readonly LoadPoint[]): (point: LoadPoint, at: number) => boolean {
  const most = Math.max(...points.map(({ ratePerS }) => ratePerS));
  const peak = points.findIndex(({ ratePerS }) => ratePerS * (1 + SAME_RATE) >= most);
  return ({ inFlight }, at) => at > peak && inFlight >= MORE_IN_FLIGHT * points[peak]!.inFlight;
}

function isBeyond({ ratePerS, offeredPerS }: LoadPoint): boolean {
  return offeredPerS !== null && ratePerS < FINISHED * offeredPerS;
}

/** A run ends with requests under way, which do not count as finished. */
const FINISHED = 0.95;

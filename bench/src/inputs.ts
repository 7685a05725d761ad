import { type CurveSet, GENERIC_PROFILE, seededRandom } from "@guidevane/core";

/** What is timed, and what the tests check the contestants on: one file, so that both see the same. */

/** Curves of `engines` engines with the generic profile's knots, each loaded between nothing and a little over full. */
export function curveInputs(engines: number): { curves: CurveSet; loadWps: Float64Array } {
  const random = seededRandom(engines);
  const knots = GENERIC_PROFILE.ttftMs;
  const base = knots[0]![1];
  const capacityWps = Float64Array.from({ length: engines }, () => 5 + 95 * random());
  return {
    curves: {
      capacityWps,
      knotStart: Uint32Array.from({ length: engines + 1 }, (_, engine) => engine * knots.length),
      knotRho: Float64Array.from({ length: engines * knots.length }, (_, at) => knots[at % knots.length]![0]),
      knotMs: Float64Array.from({ length: engines * knots.length }, (_, at) => knots[at % knots.length]![1] - base),
      headroom: 0.06,
      headroomMs: 6000,
    },
    loadWps: capacityWps.map((capacity) => capacity * 1.05 * random()),
  };
}

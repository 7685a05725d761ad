import { seededRandom, standardNormal } from "@guidevane/core";
import type { Problem } from "./problem.ts";

/** Draws of demand by chance. */
const DRAWS = 20;
/** The gain counts as chance when this many draws show as much: more than one time in ten. */
const ENOUGH = 3;
/** The least part of a cell's demand that a draw leaves it. */
const LEAST_PART = 0.1;

/**
 * Whether the gain that a solve seems to offer is no more than what measuring demand makes of nothing: were demand still
 * what the present weights were made for, and measured as exactly as it is now, would one measurement in ten show as much?
 * The draws are the same each time, so that inputs that stand still give one answer.
 *
 * @param problem any demand; what it charges for moves is counted from is scaled with the demand drawn
 * @param madeForWps the demand that the weights were made for, and `deviationWps` what chance makes of measuring it
 * @param gainOf what a solve may gain on a problem
 * @param limitMs what it seems to gain beyond what the gate lets pass anyway
 */
export function isChance(
  problem: Problem,
  madeForWps: Float64Array,
  deviationWps: Float64Array,
  gainOf: (problem: Problem) => number,
  limitMs: number,
): boolean {
  if (deviationWps.every((each) => each === 0)) return false;
  const random = seededRandom(1);
  let asMuch = 0;
  for (let left = DRAWS; left > 0 && asMuch < ENOUGH && asMuch + left >= ENOUGH; left--) {
    const drawn = madeForWps.map((mean, cell) =>
      Math.max(LEAST_PART * mean, mean + deviationWps[cell]! * standardNormal(random)),
    );
    if (gainOf(withDemand(problem, drawn)) >= limitMs) asMuch++;
  }
  return asMuch >= ENOUGH;
}

/** The same problem with other demand: the published weights carry it all the same. */
function withDemand(problem: Problem, demandWps: Float64Array): Problem {
  const { churn, arcStart } = problem;
  if (churn === undefined) return { ...problem, demandWps };
  const referenceWps = churn.referenceWps.slice();
  for (let cell = 0; cell < demandWps.length; cell++) {
    const factor = demandWps[cell]! / problem.demandWps[cell]!;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) referenceWps[arc]! *= factor;
  }
  return { ...problem, demandWps, churn: { ...churn, referenceWps } };
}

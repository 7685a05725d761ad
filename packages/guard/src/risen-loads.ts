import { type ClusterSnapshot, planColumns } from "@guidevane/core";
import { meanedEvents } from "./rate-meter.ts";
import { type CellFlow, tellsOfPlan } from "./utilisation.ts";

/** A rise within so many deviations of chance is none: the limits of penalties would let go and take hold in turns. */
const DEVIATIONS = 2;

/**
 * Load of engines beyond their plan, work units/s, by what this gateway sees of the cluster's cells; those without a rise are
 * left out. A plan whose weights stay good is not published anew however far demand rises (equal engines share any load
 * alike), so its loads can be hours old. Each cell's part of them is scaled by its rate of first attempts now ÷ when the
 * snapshot came, less what chance may add; never down, for the snapshot's own figures hold in any case.
 */
export function risenLoads(
  snapshot: ClusterSnapshot,
  flowOf: (requestClass: string) => CellFlow,
): ReadonlyMap<string, number> {
  const { engines, pairAt, pairEngine, weights } = planColumns(snapshot);
  const risenWps = new Float64Array(engines.length);
  for (const [cell, { class: name, demandRps, shed, work }] of snapshot.cells.entries()) {
    const plannedRps = demandRps * (1 - shed);
    const part = plannedRps > 0 ? riseOf(flowOf(name), plannedRps / Math.max(1, snapshot.gateways)) : 0;
    if (part === 0) continue;
    for (let pair = pairAt[cell]!; pair < pairAt[cell + 1]!; pair++)
      risenWps[pairEngine[pair]!]! += part * plannedRps * work * weights[pair]!;
  }
  const risen = new Map<string, number>();
  for (const [at, wps] of risenWps.entries()) if (wps > 0) risen.set(engines[at]!, wps);
  return risen;
}

/** By what part of itself a cell's rate has risen beyond chance. @param ownRps what the plan gave this gateway */
function riseOf({ rps, plannedRps }: CellFlow, ownRps: number): number {
  if (rps <= 0) return 0;
  const isKnown = tellsOfPlan(plannedRps, ownRps);
  const beforeRps = isKnown ? plannedRps : ownRps;
  const variance = 1 / meanedEvents(rps) + (isKnown ? 1 / meanedEvents(plannedRps) : 0);
  return Math.max(0, (rps / beforeRps) * (1 - DEVIATIONS * Math.sqrt(variance)) - 1);
}

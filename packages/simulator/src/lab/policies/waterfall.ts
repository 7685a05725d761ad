import type { PolicyDefinition, PolicyWorld } from "../policy.ts";
import { weightedPolicy } from "../weighted-rings.ts";

/**
 * Fills the nearest engines up to a threshold of their capacity and spills what is left to the next nearest, for all
 * cells at once, the shortest distances first. What no engine has room for under the threshold goes by capacity.
 */
export const waterfall: PolicyDefinition = {
  name: "waterfall",
  does: "fills the nearest engines up to a threshold, then spills to the next nearest",
  grid: { threshold: [0.85, 0.6, 0.7, 0.8, 0.9, 0.95] },
  create: (world, { threshold }) =>
    weightedPolicy(world, () => {
      const loads = fill(world, threshold!);
      return (cell, engine) => loads[cell]![engine]!;
    }),
};

/** Work units/s of each cell at each engine. */
function fill(world: PolicyWorld, threshold: number): Float64Array[] {
  const { fleet } = world;
  const { clusters, engines, classes, capacityWps } = fleet;
  const live = Float64Array.from(engines, ({ replicas }, e) => (capacityWps[e]! * world.readyReplicas(e)) / replicas);
  const room = live.map((capacity) => threshold * capacity);
  const left = fleet.eligible.map(
    (_, cell) => world.demandRps(cell) * classes[Math.floor(cell / clusters.length)]!.work,
  );
  const loads = fleet.eligible.map(() => new Float64Array(engines.length));
  const rttMs = (cell: number, engine: number): number =>
    fleet.rttMs[(cell % clusters.length) * engines.length + engine]!;
  const distances = [...new Set(fleet.eligible.flatMap((list, cell) => Array.from(list, (e) => rttMs(cell, e))))];
  for (const distance of distances.sort((a, b) => a - b)) {
    for (const [cell, list] of fleet.eligible.entries()) {
      const here = Array.from(list).filter((engine) => rttMs(cell, engine) === distance);
      const roomHere = here.reduce((sum, engine) => sum + room[engine]!, 0);
      const taken = Math.min(left[cell]!, roomHere);
      if (!(taken > 0)) continue;
      left[cell]! -= taken;
      for (const engine of here) {
        const part = (taken * room[engine]!) / roomHere;
        loads[cell]![engine]! += part;
        room[engine]! -= part;
      }
    }
  }
  for (const [cell, list] of fleet.eligible.entries()) {
    const capacity = list.reduce((sum, engine) => sum + live[engine]!, 0);
    if (left[cell]! > 0 && capacity > 0)
      for (const engine of list) loads[cell]![engine]! += (left[cell]! * live[engine]!) / capacity;
  }
  return loads;
}

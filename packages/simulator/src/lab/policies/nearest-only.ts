import type { PolicyDefinition } from "../policy.ts";
import { WeightedRings } from "../weighted-rings.ts";

/** The engines nearest to the cluster, in proportion to their capacity, and no other while one of them lives. */
export const nearestOnly: PolicyDefinition = {
  name: "nearest-only",
  does: "keeps every request at the engines with the least round trip, in proportion to their capacity",
  grid: {},
  create(world) {
    const rings = new WeightedRings(world);
    const { fleet } = world;
    const rttMs = (cell: number, engine: number): number =>
      fleet.rttMs[(cell % fleet.clusters.length) * fleet.engines.length + engine]!;
    return {
      route: (gateway, request, tried) => rings.route(gateway, request, tried),
      tick() {
        rings.publish((cell, engine) => {
          const live = [...fleet.eligible[cell]!].filter((each) => world.readyReplicas(each) > 0);
          const leastMs = Math.min(...live.map((each) => rttMs(cell, each)));
          return rttMs(cell, engine) <= leastMs + SAME_MS ? fleet.capacityWps[engine]! : 0;
        });
      },
    };
  },
};

/** Round trips that differ by less are of one place. */
const SAME_MS = 5;

import type { PolicyDefinition } from "../policy.ts";
import { weightedPolicy } from "../weighted-rings.ts";

/** Weights in proportion to capacity, whatever the distance. */
export const capacityProportional: PolicyDefinition = {
  name: "capacity-proportional",
  does: "gives every engine a share in proportion to its live capacity, wherever it is",
  grid: {},
  create: (world) =>
    weightedPolicy(world, () => {
      const { capacityWps, engines } = world.fleet;
      return (_, engine) => (capacityWps[engine]! * world.readyReplicas(engine)) / engines[engine]!.replicas;
    }),
};

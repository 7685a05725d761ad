import type { PolicyDefinition } from "../policy.ts";
import { WeightedRings } from "../weighted-rings.ts";

/** Consistent hashing of the conversation's key, every engine with the same share or by capacity to a power; nothing else. */
export const hashOnly: PolicyDefinition = {
  name: "hash-only",
  does: "hashes the conversation's key to an engine, the same for all clusters, and never deviates",
  grid: { capacityPower: [0, 1] },
  create(world, { capacityPower }) {
    const rings = new WeightedRings(world);
    let isPublished = false;
    return {
      route: (gateway, request, tried) => rings.route(gateway, request, tried),
      tick() {
        if (isPublished) return;
        isPublished = true;
        rings.publish((_, engine) => world.fleet.capacityWps[engine]! ** capacityPower!);
      },
    };
  },
};

import { valueAt } from "@guidevane/core";
import type { PolicyDefinition } from "../policy.ts";
import { WeightedRings } from "../weighted-rings.ts";

/** Weights that somebody wrote down once: capacity ÷ (round trip + idle TTFT) to a power. No signal changes them. */
export const staticRing: PolicyDefinition = {
  name: "static-ring",
  does: "routes by a ring of fixed weights, capacity ÷ (round trip + idle TTFT)^power",
  grid: { power: [1, 0, 0.1, 0.25, 0.5, 2] },
  create(world, { power }) {
    const rings = new WeightedRings(world);
    const { fleet } = world;
    let isPublished = false;
    return {
      route: (gateway, request, tried) => rings.route(gateway, request, tried),
      tick() {
        if (isPublished) return;
        isPublished = true;
        rings.publish((cell, engine) => {
          const rttMs = fleet.rttMs[(cell % fleet.clusters.length) * fleet.engines.length + engine]!;
          return fleet.capacityWps[engine]! / (rttMs + valueAt(fleet.profiles[engine]!.ttftMs, 0)) ** power!;
        });
      },
    };
  },
};

import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/**
 * The engine with the fewest requests of this cluster's gateways for its capacity. Counts are the gateways' own and exact;
 * what other clusters have there is not known.
 */
export const leastInFlight: PolicyDefinition = {
  name: "least-in-flight",
  does: "sends each request where its cluster has the fewest under way for the engine's capacity",
  grid: { nearPart: [0.02, 0, 0.1, 0.3, 1] },
  create(world, { nearPart }) {
    const { fleet, gatewayCluster, inFlight } = world;
    return {
      route(gateway, request, tried) {
        const cell = cellOf(world, request);
        const cluster = gatewayCluster[gateway]!;
        let best = NOBODY;
        let least = Number.POSITIVE_INFINITY;
        for (const engine of fleet.eligible[cell]!) {
          if (!isUsable(world, gateway, engine, tried)) continue;
          let count = 1;
          for (let other = 0; other < gatewayCluster.length; other++)
            if (gatewayCluster[other] === cluster) count += inFlight[other * fleet.engines.length + engine]!;
          const rttMs = fleet.rttMs[cluster * fleet.engines.length + engine]!;
          const score = (count / fleet.capacityWps[engine]!) * (1 + nearPart! * rttMs);
          if (score < least) {
            least = score;
            best = engine;
          }
        }
        return best;
      },
    };
  },
};

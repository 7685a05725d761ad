import { ConversationPlaces } from "../conversation-places.ts";
import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/**
 * A conversation stays at the engine that has its prefix, unless that is much busier than the others: then, and for first
 * requests, the least busy one for its capacity takes it, and is remembered.
 */
export const prefixAffinity: PolicyDefinition = {
  name: "prefix-affinity",
  does: "stays where the prefix is cached unless that engine is much busier than the mean; else the least busy",
  grid: { ratio: [1.5, 1.2, 2, 3], rttWeight: [0.01, 0, 0.03] },
  create(world, { ratio, rttWeight }) {
    const { fleet, signals, inFlight } = world;
    const places = new ConversationPlaces(world);
    const count = fleet.engines.length;
    const busy = (gateway: number, engine: number): number =>
      (1 + Math.max(signals.running[engine]! + signals.waiting[engine]!, inFlight[gateway * count + engine]!)) /
      fleet.capacityWps[engine]!;
    return {
      route(gateway, request, tried) {
        const engines = fleet.eligible[cellOf(world, request)]!;
        const conversation = world.workload.conversation[request]!;
        const rttFrom = world.gatewayCluster[gateway]! * count;
        let best = NOBODY;
        let least = Number.POSITIVE_INFINITY;
        let sum = 0;
        let usable = 0;
        for (const engine of engines) {
          if (!isUsable(world, gateway, engine, tried)) continue;
          const load = busy(gateway, engine);
          const score = load * (1 + rttWeight! * fleet.rttMs[rttFrom + engine]!);
          sum += load;
          usable += 1;
          if (score >= least) continue;
          least = score;
          best = engine;
        }
        const place = places.of(gateway, conversation);
        const stays =
          place >= 0 &&
          isUsable(world, gateway, place, tried) &&
          busy(gateway, place) <= (ratio! * sum) / usable + FREE / fleet.capacityWps[place]!;
        return places.set(gateway, conversation, stays ? place : best);
      },
    };
  },
};

/** So many requests are never too many. */
const FREE = 4;

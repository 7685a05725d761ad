import { valueAt } from "@guidevane/core";
import { ConversationPlaces } from "../conversation-places.ts";
import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/**
 * Each request for itself to where it expects to be answered first: round trip + time to read what is not cached there +
 * time that the engine's queue takes + its tokens at the engine's present pace. Good for the request, whatever it does to
 * others.
 */
export const greedyNetwork: PolicyDefinition = {
  name: "greedy-network",
  does: "sends each request to the least round trip + uncached prefill + queue estimate",
  grid: { queueWeight: [1, 0.5, 2, 4] },
  create(world, { queueWeight }) {
    const { fleet, signals, inFlight, workload } = world;
    const places = new ConversationPlaces(world);
    const count = fleet.engines.length;
    return {
      route(gateway, request, tried) {
        const conversation = workload.conversation[request]!;
        const place = places.of(gateway, conversation);
        const promptTokens = workload.promptTokens[request]!;
        const requestClass = world.places.class[workload.requestClass[request]!]!;
        const addedTokens = Math.min(promptTokens, fleet.classes[requestClass]!.promptTokens);
        const outputTokens = fleet.classes[requestClass]!.outputTokens;
        let best = NOBODY;
        let least = Number.POSITIVE_INFINITY;
        for (const engine of fleet.eligible[cellOf(world, request)]!) {
          if (!isUsable(world, gateway, engine, tried)) continue;
          const profile = fleet.profiles[engine]!;
          const { replicas } = fleet.engines[engine]!;
          // What was sent since the engine spoke last is not in its signals; the most of both is the better guess.
          const there = Math.max(signals.running[engine]!, inFlight[gateway * count + engine]!);
          const rho = Math.min(1, (there * valueAt(profile.tbotMs, 0.5)) / 1000 / fleet.capacityWps[engine]!);
          const readTokens = engine === place ? addedTokens : promptTokens;
          const ms =
            fleet.rttMs[world.gatewayCluster[gateway]! * count + engine]! +
            profile.prefillMsPerTok * readTokens +
            queueWeight! * profile.prefillMsPerTok * (signals.waitingTokens[engine]! / replicas) +
            outputTokens * valueAt(profile.tbotMs, rho * outputTokens);
          if (ms >= least) continue;
          least = ms;
          best = engine;
        }
        return places.set(gateway, conversation, best);
      },
    };
  },
};

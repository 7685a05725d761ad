import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/** Of two engines drawn at random the one that is less busy for its capacity, by what it said last and what was sent since. */
export const powerOfTwo: PolicyDefinition = {
  name: "power-of-two",
  does: "draws two engines and takes the less busy one for its capacity",
  grid: { rttWeight: [0.01, 0, 0.05] },
  create(world, { rttWeight }) {
    const { fleet, signals, inFlight } = world;
    const score = (gateway: number, engine: number): number => {
      const at = gateway * fleet.engines.length + engine;
      const rttMs = fleet.rttMs[world.gatewayCluster[gateway]! * fleet.engines.length + engine]!;
      const busy = 1 + Math.max(signals.running[engine]! + signals.waiting[engine]!, inFlight[at]!);
      return (busy / fleet.capacityWps[engine]!) * (1 + rttWeight! * rttMs);
    };
    return {
      route(gateway, request, tried) {
        const engines = fleet.eligible[cellOf(world, request)]!.filter((e) => isUsable(world, gateway, e, tried));
        if (engines.length === 0) return NOBODY;
        const one = engines[Math.floor(world.random() * engines.length)]!;
        const two = engines[Math.floor(world.random() * engines.length)]!;
        return score(gateway, one) <= score(gateway, two) ? one : two;
      },
    };
  },
};

import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/**
 * Consistent hashing with bounded loads: an engine with more than `bound` times its part (by capacity) of the gateway's
 * requests is passed over for the next in the key's own order. Where a conversation went is not remembered.
 */
export const boundedLoad: PolicyDefinition = {
  name: "bounded-load",
  does: "hashes the key by capacity, passing over engines above a bound of their part; remembers nothing",
  grid: { bound: [1.25, 1.1, 1.5, 2, 3, 5] },
  create(world, { bound }) {
    const { fleet, inFlight } = world;
    const count = fleet.engines.length;
    const scores = new Float64Array(count);
    return {
      route(gateway, request, tried) {
        const engines = fleet.eligible[cellOf(world, request)]!;
        const hash = world.keyHash[world.workload.conversation[request]!]!;
        let total = 1;
        let capacity = 0;
        for (const engine of engines) {
          const usable = isUsable(world, gateway, engine, tried);
          scores[engine] = usable ? score(hash, engine, fleet.capacityWps[engine]!) : Number.POSITIVE_INFINITY;
          if (!usable) continue;
          total += inFlight[gateway * count + engine]!;
          capacity += fleet.capacityWps[engine]!;
        }
        let first = NOBODY;
        for (;;) {
          let best = NOBODY;
          for (const engine of engines)
            if (scores[engine]! < (best < 0 ? Number.POSITIVE_INFINITY : scores[best]!)) best = engine;
          if (best < 0) return first;
          if (first < 0) first = best;
          const most = Math.ceil((bound! * total * fleet.capacityWps[best]!) / capacity);
          if (inFlight[gateway * count + best]! < most) return best;
          scores[best] = Number.POSITIVE_INFINITY;
        }
      },
    };
  },
};

/** Weighted rendezvous: the least score wins with a probability in proportion to its weight. */
function score(hash: number, engine: number, weight: number): number {
  let mixed = Math.imul(hash ^ Math.imul(engine + 1, 0x9e37_79b1), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2b2_ae35);
  return -Math.log(((mixed ^ (mixed >>> 13)) >>> 0) / 4_294_967_296 + 1e-10) / weight;
}

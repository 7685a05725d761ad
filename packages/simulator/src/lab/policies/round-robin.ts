import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/** Each gateway sends a cell's requests to the eligible engines in turn. */
export const roundRobin: PolicyDefinition = {
  name: "round-robin",
  does: "sends requests to the eligible engines in turn",
  grid: {},
  create(world) {
    const next = new Map<number, number>();
    return {
      route(gateway, request, tried) {
        const cell = cellOf(world, request);
        const engines = world.fleet.eligible[cell]!;
        const key = gateway * world.fleet.eligible.length + cell;
        const from = next.get(key) ?? gateway;
        for (let step = 0; step < engines.length; step++) {
          const engine = engines[(from + step) % engines.length]!;
          if (!isUsable(world, gateway, engine, tried)) continue;
          next.set(key, (from + step + 1) % engines.length);
          return engine;
        }
        return NOBODY;
      },
    };
  },
};

import { cellOf, isUsable, NOBODY, type PolicyDefinition } from "../policy.ts";

/** Any eligible engine, each as likely. */
export const random: PolicyDefinition = {
  name: "random",
  does: "sends each request to an eligible engine drawn at random",
  grid: {},
  create: (world) => ({
    route(gateway, request, tried) {
      const engines = world.fleet.eligible[cellOf(world, request)]!;
      const from = Math.floor(world.random() * engines.length);
      for (let step = 0; step < engines.length; step++) {
        const engine = engines[(from + step) % engines.length]!;
        if (isUsable(world, gateway, engine, tried)) return engine;
      }
      return NOBODY;
    },
  }),
};

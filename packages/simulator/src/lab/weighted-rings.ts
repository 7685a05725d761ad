import { buildRing, editRing, type Ring } from "@guidevane/selector";
import { cellOf, isUsable, NOBODY, type Policy, type PolicyWorld } from "./policy.ts";

/** Weight of an engine in a cell; they are divided by their sum. */
export type WeightOf = (cell: number, engine: number) => number;

/**
 * A control plane that publishes weights, and gateways that route by rings of them, as production does: a conversation's
 * key names a slot, and new weights move the fewest slots. What differs between such policies is only where the weights
 * come from, so that nothing else is compared.
 *
 * @param plan one round of the control plane; null = nothing to publish
 */
export function weightedPolicy(world: PolicyWorld, plan: () => WeightOf | null): Policy {
  const rings = new WeightedRings(world);
  return {
    route: (gateway, request, tried) => rings.route(gateway, request, tried),
    tick() {
      const weightOf = plan();
      if (weightOf !== null) rings.publish(weightOf);
    },
  };
}

/** One ring for each cell, as the gateways have it, and the weights that were published last. */
export class WeightedRings {
  readonly #world: PolicyWorld;
  readonly #published: Ring[] = [];
  /** What gateways route by: the published ones come later. */
  readonly #routed: Ring[] = [];
  readonly #weights: Float64Array[] = [];

  constructor(world: PolicyWorld) {
    this.#world = world;
    for (const [cell, engines] of world.fleet.eligible.entries()) {
      if (engines.length === 0) continue;
      const ids = Array.from(engines, (engine) => world.fleet.engines[engine]!.id);
      this.#published[cell] = buildRing(ids, new Float64Array(engines.length).fill(1), SLOTS);
      this.#routed[cell] = this.#published[cell];
    }
  }

  publish(weightOf: WeightOf): void {
    const { fleet, deliver, published } = this.#world;
    const next: Ring[] = [];
    for (const [cell, engines] of fleet.eligible.entries()) {
      const before = this.#published[cell];
      if (before === undefined) continue;
      const weights = Float64Array.from(engines, (engine) => Math.max(0, weightOf(cell, engine)));
      const sum = weights.reduce((total, each) => total + each, 0);
      // No engine has anything to give, or nothing is new: what was published stands.
      if (!(sum > 0)) continue;
      const all = spread(fleet.engines.length, engines, weights, sum);
      const last = this.#weights[cell];
      published(cell, all);
      if (last !== undefined && all.every((weight, engine) => Math.abs(weight - last[engine]!) < UNCHANGED)) continue;
      this.#weights[cell] = all;
      next[cell] = editRing(before, before.engines, weights, SLOTS);
    }
    for (const [cell, ring] of next.entries()) if (ring !== undefined) this.#published[cell] = ring;
    deliver(() => {
      for (const [cell, ring] of next.entries()) if (ring !== undefined) this.#routed[cell] = ring;
    });
  }

  /** The owner of the key's slot; where it can't take it, the owners of the slots after it. */
  route(gateway: number, request: number, tried: readonly number[]): number {
    const world = this.#world;
    const cell = cellOf(world, request);
    const ring = this.#routed[cell];
    if (ring === undefined) return NOBODY;
    const engines = world.fleet.eligible[cell]!;
    const hash = world.keyHash[world.workload.conversation[request]!]!;
    const slots = ring.owners.length;
    const from = Math.floor((hash * slots) / 4_294_967_296);
    for (let step = 0; step < slots; step++) {
      const engine = engines[ring.owners[(from + step) % slots]!]!;
      if (isUsable(world, gateway, engine, tried)) return engine;
    }
    // Every engine of the ring is out: any other that is left.
    return engines.find((engine) => isUsable(world, gateway, engine, tried)) ?? NOBODY;
  }
}

const SLOTS = 4096;
const UNCHANGED = 1e-9;

function spread(count: number, engines: Uint16Array, weights: Float64Array, sum: number): Float64Array {
  const all = new Float64Array(count);
  for (const [index, engine] of engines.entries()) all[engine] = weights[index]! / sum;
  return all;
}

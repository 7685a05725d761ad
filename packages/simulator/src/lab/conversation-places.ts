import type { PolicyWorld } from "./policy.ts";

/**
 * Where each gateway sent a conversation last. Gateways share nothing: a conversation whose next request comes to another
 * gateway of its cluster is new to it.
 */
export class ConversationPlaces {
  readonly #conversations: number;
  readonly #place: Int16Array;

  constructor(world: PolicyWorld) {
    this.#conversations = world.keyHash.length;
    this.#place = new Int16Array(this.#conversations * world.gatewayCluster.length).fill(-1);
  }

  /** Engine; −1 = not known. */
  of(gateway: number, conversation: number): number {
    return this.#place[gateway * this.#conversations + conversation]!;
  }

  set(gateway: number, conversation: number, engine: number): number {
    if (engine >= 0) this.#place[gateway * this.#conversations + conversation] = engine;
    return engine;
  }
}

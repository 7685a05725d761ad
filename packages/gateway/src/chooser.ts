import { HEAD, type HeadFacts, NO_CLASS, OUT, OUT_WORDS, ROUTE_STATUS, type RouteStatus } from "@guidevane/selector";
import type { Exchange } from "./exchange.ts";
import { createHeadFacts, fillHead } from "./head-facts.ts";
import type { RouteParts } from "./open-exchange.ts";
import { responseKey } from "./response-memory.ts";
import type { Routing } from "./routing.ts";

export type ChooserParts = Pick<RouteParts, "clock" | "placement" | "metrics" | "responses">;

/** Chooses engines for one thread's requests. One request at a time is between a choice and reading it: nothing awaits in between. */
export class Chooser {
  /** The last choice, in words of `OUT`. */
  readonly out: Uint32Array = new Uint32Array(OUT_WORDS);
  readonly #facts: HeadFacts = createHeadFacts();
  readonly #parts: ChooserParts;

  constructor(parts: ChooserParts) {
    this.#parts = parts;
  }

  /**
   * One call of the selector, or two where the request follows an answer; the choice is in `out` until the next await.
   *
   * @param tried state slots of engines that are not to be asked again
   */
  choose(exchange: Exchange, tried: readonly number[]): RouteStatus {
    const { head, routing, text } = exchange;
    const numbers = routing.numbersOf(head);
    if (numbers === null) {
      this.out[OUT.requestClass] = NO_CLASS;
      return ROUTE_STATUS.noEligibleEngine;
    }
    const { clock, placement } = this.#parts;
    fillHead(this.#facts, head, numbers, { wallMs: clock.wallMs(), placement: placement(), tried });
    const status = this.#route(routing, text);
    const slot = this.#rememberedSlot(exchange, numbers.tenant);
    if (slot === null) return status;
    // Only the engine that gave the answer before this one has it.
    this.#facts.words[HEAD.followed] = 1 + slot;
    return this.#route(routing, text);
  }

  #route({ router }: Routing, text: Buffer): RouteStatus {
    const fromMs = performance.now();
    const status = router.route(this.#facts, text, this.out);
    this.#parts.metrics.routeSeconds.add("", (performance.now() - fromMs) / 1000);
    return status;
  }

  /** Where the answer that the body names (`previous_response_id`) came from; null where it names none or nobody knows. */
  #rememberedSlot({ routing, text }: Exchange, tenant: number): number | null {
    const [start, end] = [this.out[OUT.previousStart]!, this.out[OUT.previousEnd]!];
    if (end <= start) return null;
    const { responses, clock } = this.#parts;
    const engine = responses.find(responseKey(text, start, end, tenant), clock.nowMs() / 1000);
    return engine === 0 ? null : routing.slotOfHash(engine);
  }
}

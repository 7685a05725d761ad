import { classify } from "./classify.ts";
import { FACT, FACT_WORDS, NEEDS_ALL } from "./facts.ts";
import { writeKey } from "./key.ts";
import { Picker } from "./pick.ts";
import {
  HEAD,
  type HeadFacts,
  KEY_SOURCES,
  NO_CLASS,
  NO_ENGINE,
  NO_SLOT,
  OUT,
  PATH,
  ROUTE_STATUS,
  type Router,
  type RouteStatus,
  type SharedState,
} from "./router.ts";
import { scan } from "./scan.ts";
import type { RoutingTable } from "./table.ts";
import { canonicalBody } from "./unusual.ts";

/** The router in TypeScript: the native one's twin, its oracle, and what decides bodies that the native one finds unusual. */
export class TsRouter implements Router {
  readonly kind = "ts";
  readonly #table: RoutingTable;
  readonly #picker: Picker;
  readonly #facts = new Uint32Array(FACT_WORDS);
  #count = 0;

  constructor(table: RoutingTable, state: SharedState) {
    this.#table = table;
    this.#picker = new Picker(table.columns, state);
  }

  route(head: HeadFacts, body: Uint8Array, out: Uint32Array): RouteStatus {
    // Every call counts, with a key or without, so that twins that see the same calls count alike.
    this.#count = (this.#count + 1) >>> 0;
    if (!scan(body, this.#facts)) return this.routeUnusual(head, body, out, this.#count);
    out[OUT.modelStart] = this.#facts[FACT.modelStart]!;
    out[OUT.modelEnd] = this.#facts[FACT.modelEnd]!;
    return this.#decide(head, body, body.length, out, this.#count);
  }

  /** `route` of a body that the scan left to `JSON.parse`; it does allocate. @param count of the call */
  routeUnusual(head: HeadFacts, body: Uint8Array, out: Uint32Array, count: number): RouteStatus {
    out[OUT.modelStart] = 0;
    out[OUT.modelEnd] = 0;
    const canonical = canonicalBody(body);
    if (typeof canonical === "number") {
      this.#facts.fill(0);
      this.#clear(out);
      return canonical;
    }
    if (!scan(canonical, this.#facts, true)) {
      this.#facts.fill(0);
      this.#clear(out);
      return ROUTE_STATUS.tooUnusual;
    }
    return this.#decide(head, canonical, body.length, out, count);
  }

  #decide(head: HeadFacts, source: Uint8Array, bytes: number, out: Uint32Array, count: number): RouteStatus {
    const facts = this.#facts;
    this.#clear(out);
    out[OUT.stream] = facts[FACT.stream]!;
    out[OUT.store] = facts[FACT.store]!;
    out[OUT.needs] = facts[FACT.uses]! & NEEDS_ALL;
    const path = head.words[HEAD.path]!;
    out[OUT.first] = path === PATH.chat && facts[FACT.hasMessages] === 1 && facts[FACT.hasTurn] === 0 ? 1 : 0;
    // Each of many prompts in one body has the context to itself, so their sum says nothing.
    const isList = path !== PATH.chat && facts[path === PATH.embeddings ? FACT.inputIsList : FACT.promptIsList] === 1;
    const textBytes = isList ? 0 : Math.max(bytes - facts[FACT.mediaBytes]!, 0);
    out[OUT.contextTokens] = Math.floor(textBytes / 4) + facts[FACT.maxTokens]!;
    writeKey(head, source, facts, count, out);
    const status = classify(this.#table.columns, head, source, facts, out);
    return status === ROUTE_STATUS.ok ? this.#picker.pick(head, out) : status;
  }

  /** All but the model's span. */
  #clear(out: Uint32Array): void {
    out[OUT.engine] = NO_ENGINE;
    out[OUT.requestClass] = NO_CLASS;
    out[OUT.cell] = NO_CLASS;
    out[OUT.reason] = 0;
    out[OUT.keySource] = NO_KEY;
    out[OUT.home] = NO_ENGINE;
    out[OUT.second] = NO_ENGINE;
    out[OUT.slot] = NO_SLOT;
    out[OUT.keyHash] = 0;
    out[OUT.keyHash2] = 0;
    out[OUT.stream] = 0;
    out[OUT.first] = 0;
    out[OUT.needs] = 0;
    out[OUT.contextTokens] = 0;
    out[OUT.store] = 0;
  }
}

const NO_KEY = KEY_SOURCES.indexOf("none");

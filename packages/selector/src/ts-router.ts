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
} from "./router.ts";
import { scan } from "./scan.ts";
import type { SharedState } from "./shared-state.ts";
import type { RoutingTable } from "./table.ts";
import { canonicalBody } from "./unusual.ts";
import { writeUnusualSpans } from "./unusual-spans.ts";

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
    writeSpans(this.#facts, out);
    out[OUT.unusual] = 0;
    return this.#decide(head, body, body.length, out, this.#count);
  }

  /** `route` of a body that the scan left to `JSON.parse`; it does allocate. @param count of the call */
  routeUnusual(head: HeadFacts, body: Uint8Array, out: Uint32Array, count: number): RouteStatus {
    out[OUT.unusual] = 1;
    const canonical = canonicalBody(body);
    if (typeof canonical === "number" || !scan(canonical, this.#facts, true)) {
      this.#facts.fill(0);
      writeSpans(this.#facts, out);
      this.#clear(out);
      return typeof canonical === "number" ? canonical : ROUTE_STATUS.tooUnusual;
    }
    writeUnusualSpans(body, out);
    return this.#decide(head, canonical, body.length, out, count);
  }

  #decide(head: HeadFacts, source: Uint8Array, bytes: number, out: Uint32Array, count: number): RouteStatus {
    const facts = this.#facts;
    this.#clear(out);
    out[OUT.stream] = facts[FACT.stream]!;
    out[OUT.store] = facts[FACT.store]!;
    out[OUT.background] = facts[FACT.background]!;
    out[OUT.choices] = Math.max(facts[FACT.choices]!, 1);
    out[OUT.needs] = facts[FACT.uses]! & NEEDS_ALL;
    const path = head.words[HEAD.path]!;
    out[OUT.first] = isFirst(path, facts) ? 1 : 0;
    const textBytes = isOneText(path, facts) ? Math.max(bytes - facts[FACT.mediaBytes]!, 0) : 0;
    out[OUT.contextTokens] = Math.floor(textBytes / 4) + facts[FACT.maxTokens]!;
    writeKey(head, source, facts, count, out);
    const status = classify(this.#table.columns, head, source, facts, out);
    return status === ROUTE_STATUS.ok ? this.#picker.pick(head, out) : status;
  }

  /** All but the spans. */
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
    out[OUT.background] = 0;
    out[OUT.choices] = 0;
    out[OUT.model] = NO_CLASS;
    out[OUT.aliased] = 0;
  }
}

/** Whether a body shows itself to be a conversation's first request. */
function isFirst(path: number, facts: Uint32Array): boolean {
  if (facts[FACT.hasTurn] === 1) return false;
  if (path === PATH.chat || path === PATH.messages) return facts[FACT.hasMessages] === 1;
  // What the engine keeps of a conversation, the body doesn't show.
  return (
    path === PATH.responses &&
    facts[FACT.previousStart] === facts[FACT.previousEnd] &&
    facts[FACT.conversationStart] === facts[FACT.conversationEnd]
  );
}

/**
 * Whether the body's bytes are one context. Each of many prompts in one body has the context to itself, so their sum says
 * nothing; and tokens that are only counted need none.
 */
function isOneText(path: number, facts: Uint32Array): boolean {
  if (path === PATH.completions) return facts[FACT.promptIsList] === 0;
  if (path === PATH.embeddings) return facts[FACT.inputIsList] === 0;
  return path === PATH.chat || path === PATH.messages || path === PATH.responses;
}

function writeSpans(facts: Uint32Array, out: Uint32Array): void {
  out[OUT.modelStart] = facts[FACT.modelStart]!;
  out[OUT.modelEnd] = facts[FACT.modelEnd]!;
  out[OUT.previousStart] = facts[FACT.previousStart]!;
  out[OUT.previousEnd] = facts[FACT.previousEnd]!;
  out[OUT.conversationStart] = facts[FACT.conversationStart]!;
  out[OUT.conversationEnd] = facts[FACT.conversationEnd]!;
}

const NO_KEY = KEY_SOURCES.indexOf("none");

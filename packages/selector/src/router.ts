/**
 * The seam between the gateway and the selector: one call per request, body bytes in, engine out. The native router and
 * its TypeScript twin answer the same, to the last bit.
 *
 * Facts about the head go in, and what was found comes out, through preallocated arrays of words whose places are named
 * here; `native/crates/core/src/seam.rs` has the same numbers, and a test holds the two lists together.
 */
export interface Router {
  readonly kind: "native" | "ts";
  /**
   * Fills `out` with what `OUT` names; may be called again with engines tried. Never throws or waits, and allocates only
   * for a body so unusual that `JSON.parse` must decide it.
   */
  route(head: HeadFacts, body: Uint8Array, out: Uint32Array): RouteStatus;
}

/** What the gateway read from a request's head. One per thread, overwritten for each request. */
export interface HeadFacts {
  /** Places: `HEAD`. Length `HEAD_WORDS`. */
  readonly words: Uint32Array;
  /** The session key (already trimmed, joined) in its first `words[HEAD.sessionKeyBytes]` bytes. */
  readonly bytes: Uint8Array;
}

/** Engines that one request may have tried; more attempts than this are never configured. */
export const TRIED_MAX = 8;

export const HEAD = {
  /** A `PATH` number. */
  path: 0,
  /** 1 + the index of the class that a trusted header names; 0 = none. */
  classNamed: 1,
  /** XXH32 of the tenant; 0 = none. */
  tenant: 2,
  sessionKeyBytes: 3,
  /**
   * 1 + the index into the table's residencies that a trusted header names; 0 = none. A name that the table doesn't have
   * is 1 + the number of its residencies, and no engine serves it.
   */
  residency: 4,
  /** Seconds of one clock for all threads of the process: what remembered moves are aged by. */
  nowS: 5,
  triedCount: 6,
  /** 1 = first requests go to home or second, whichever has fewer streams for its part; 0 = to home. */
  placement: 7,
  /** 1 + the state slot of the engine that holds what `previous_response_id` names; 0 = none is named, or not known. */
  followed: 8,
  /** State slots of the engines tried, `TRIED_MAX` places. */
  tried: 9,
} as const;
export const HEAD_WORDS: number = HEAD.tried + TRIED_MAX;
export const HEAD_BYTES = 16_384;

export const OUT = {
  /** State slot of the engine chosen. */
  engine: 0,
  /** Index of the class in the table. */
  requestClass: 1,
  /** Index of the cell in the snapshot. */
  cell: 2,
  /** Index into `REASONS`. */
  reason: 3,
  /** Index into `KEY_SOURCES`. */
  keySource: 4,
  /** State slot of the owner of the key's slot; `NO_ENGINE` where there is none. */
  home: 5,
  /** State slot of the candidate after home; `NO_ENGINE` where there is none, and when home took the request at once. */
  second: 6,
  /** The key's slot on the ring; `NO_SLOT` where the cell has no ring. */
  slot: 7,
  /** XXH32 of the key with seeds t and t + 1, t being the tenant's hash or 0: the same key of two tenants is two keys. */
  keyHash: 8,
  keyHash2: 9,
  /**
   * Span of the `model` value's string content in the body; both 0 when the body names none. In an unusual body it is the
   * last one's, with the escapes that it was sent with; both 0 where it can't be found.
   */
  modelStart: 10,
  modelEnd: 11,
  /** 1 when the body says `"stream": true`. */
  stream: 12,
  /** 1 when the body shows itself to be a conversation's first request. */
  first: 13,
  /** Bits of `NEED`: what the body uses. */
  needs: 14,
  /** Estimate: bytes ÷ 4 + the most output tokens asked for. */
  contextTokens: 15,
  /** 1 when the body says `"store": true`: the engine keeps something, so a second attempt is not safe. */
  store: 16,
  /** Span of the string content of `previous_response_id`, as that of `model`. */
  previousStart: 17,
  previousEnd: 18,
  /** Span of the string content of `conversation`, or of its `id`, as that of `model`. */
  conversationStart: 19,
  conversationEnd: 20,
  /** 1 when the body says `"background": true`: the answer is fetched later, from the engine that has it. */
  background: 21,
  /** Answers asked for each prompt, `n`: at least 1. */
  choices: 22,
  /** Index of the model in the table; `NO_CLASS` where the request matched none. */
  model: 23,
  /** 1 when the body names the model by an alias: an engine must be sent the model's own name. */
  aliased: 24,
  /** 1 when only `JSON.parse` could read the body. */
  unusual: 25,
} as const;
export const OUT_WORDS = 26;

export const NO_ENGINE = 0xffff_ffff;
export const NO_SLOT = 0xffff_ffff;
/** `OUT.requestClass` and `OUT.cell` when the request matched none. */
export const NO_CLASS = 0xffff_ffff;

/** How a call ended. Anything but `ok` leaves no engine in `out`. */
export const ROUTE_STATUS = {
  ok: 0,
  /** The body is not a JSON object. */
  notJson: 1,
  /** No model named, and the fleet has more than one. */
  modelRequired: 2,
  modelNotFound: 3,
  /** No engine may serve what the request needs. */
  noEligibleEngine: 4,
  /** Engines could serve it, but each was tried or is out. */
  exhausted: 5,
  /** Unusual JSON (see the scan) beyond the size that `JSON.parse` is asked to decide. */
  tooUnusual: 6,
} as const;
export type RouteStatus = (typeof ROUTE_STATUS)[keyof typeof ROUTE_STATUS];

/** Which API a request speaks: where its prompt stands, and what it uses. */
export const PATH = {
  chat: 0,
  completions: 1,
  embeddings: 2,
  responses: 3,
  messages: 4,
  countTokens: 5,
  rerank: 6,
  score: 7,
  tokenize: 8,
  detokenize: 9,
} as const;

/** Why this engine, `x-guidevane-reason`. `probe` is the gateway's own word: no router gives it. */
export const REASONS = [
  "home",
  "second",
  "followed",
  "bounded",
  "penalised",
  "ejected",
  "cooled",
  "probe",
  "reserve",
  "retry",
  "fail-open",
  "bootstrap",
] as const;
export type Reason = (typeof REASONS)[number];

/** What the key came from, `x-guidevane-key-source`. `user` is reserved: no router gives it. */
export const KEY_SOURCES = [
  "header",
  "prompt_cache_key",
  "previous_response_id",
  "conversation",
  "session_id",
  "user",
  "prompt",
  "none",
] as const;
export type KeySource = (typeof KEY_SOURCES)[number];

/** What a body uses, as bits. */
export const NEED = { tools: 1, vision: 2, audio: 4, jsonSchema: 8 } as const;

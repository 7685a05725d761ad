import type { Capability } from "@guidevane/core";
import { NEED } from "./router.ts";

/** How many system and developer messages before the first user message belong to the key. */
export const PIECES_MAX = 8;

/**
 * What a body says that routing needs, as words; spans are byte offsets. One array per router, overwritten for each
 * request. `native/crates/core/src/scan.rs` finds the same facts.
 */
export const FACT = {
  /** String content of `model`; an empty or missing string has start = end, here and below. */
  modelStart: 0,
  modelEnd: 1,
  /** String content of `prompt_cache_key`. */
  cacheKeyStart: 2,
  cacheKeyEnd: 3,
  /** String content of `previous_response_id`. */
  previousStart: 4,
  previousEnd: 5,
  /** String content of `conversation`, or of its `id`. */
  conversationStart: 6,
  conversationEnd: 7,
  /** String content of `metadata.session_id`. */
  sessionStart: 8,
  sessionEnd: 9,
  /** The raw value of `prompt`. */
  promptStart: 10,
  promptEnd: 11,
  /** The raw value of `input`. */
  inputStart: 12,
  inputEnd: 13,
  /** The raw value of `query`, `queries` or `text_1`. */
  queryStart: 14,
  queryEnd: 15,
  /** The raw value of `tokens`. */
  tokensStart: 16,
  tokensEnd: 17,
  /** The raw value of `system` or `instructions`: what a messages or responses body has instead of a first message. */
  systemStart: 18,
  systemEnd: 19,
  /** The raw `content` of the first user message. */
  userStart: 20,
  userEnd: 21,
  /** How many system and developer messages stand before it (those with content, at most `PIECES_MAX`), and their raw contents. */
  pieceCount: 22,
  pieces: 23,
  /** 1 when true. */
  stream: 39,
  store: 40,
  background: 41,
  /** Bits of `NEED` and `USE`. */
  uses: 42,
  /** The most output tokens asked for. */
  maxTokens: 43,
  /** `n`; 0 where none was asked. */
  choices: 44,
  /** Bytes of image and audio parts: they are no text, so they don't count as tokens. */
  mediaBytes: 45,
  /** 1 when `messages` is a list. */
  hasMessages: 46,
  /** 1 when a message is an assistant's or a tool's: not a conversation's first request. */
  hasTurn: 47,
  /** 1 when a user message was seen. */
  hasUser: 48,
  /** 1 when `prompt` or `input` is a list: many prompts in one body. */
  promptIsList: 49,
  inputIsList: 50,
  /** Of the message and the part being read. */
  role: 51,
  contentStart: 52,
  contentEnd: 53,
  partNeed: 54,
  /** Of a part within that part, as in a tool's result. */
  innerNeed: 55,
  /** 1 when the item being read is no message but a call, its result or the like. */
  isCall: 56,
  /** 1 when `model` is there and neither a string nor null. */
  modelIsOdd: 57,
} as const;
export const FACT_WORDS = 58;

/** What only a class's needs ask about, beside the bits of `NEED`. */
export const USE = { reasoning: 16, embeddings: 32, rerank: 64 } as const;

/** Every bit of `NEED`: what is held against the engine too, not only against the class. */
export const NEEDS_ALL: number = NEED.tools | NEED.vision | NEED.audio | NEED.jsonSchema;

/** The bit of each capability that a class or an engine names. */
export const USE_OF: Readonly<Record<Capability, number>> = {
  tools: NEED.tools,
  vision: NEED.vision,
  audio: NEED.audio,
  json_schema: NEED.jsonSchema,
  reasoning: USE.reasoning,
  embeddings: USE.embeddings,
  rerank: USE.rerank,
};

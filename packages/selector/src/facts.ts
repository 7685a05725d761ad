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
  /** String content of `conversation`, or of its `id`. */
  conversationStart: 4,
  conversationEnd: 5,
  /** String content of `metadata.session_id`. */
  sessionStart: 6,
  sessionEnd: 7,
  /** The raw value of `prompt`. */
  promptStart: 8,
  promptEnd: 9,
  /** The raw value of `input`. */
  inputStart: 10,
  inputEnd: 11,
  /** The raw `content` of the first user message. */
  userStart: 12,
  userEnd: 13,
  /** How many system and developer messages stand before it (those with content, at most `PIECES_MAX`), and their raw contents. */
  pieceCount: 14,
  pieces: 15,
  /** 1 when true. */
  stream: 31,
  store: 32,
  /** Bits of `NEED` and `USE`. */
  uses: 33,
  /** The most output tokens asked for. */
  maxTokens: 34,
  /** Bytes of image and audio parts: they are no text, so they don't count as tokens. */
  mediaBytes: 35,
  /** 1 when `messages` is a list. */
  hasMessages: 36,
  /** 1 when a message is an assistant's or a tool's: not a conversation's first request. */
  hasTurn: 37,
  /** 1 when a user message was seen. */
  hasUser: 38,
  /** 1 when `prompt` or `input` is a list: many prompts in one body. */
  promptIsList: 39,
  inputIsList: 40,
  /** Of the message and the part being read. */
  role: 41,
  contentStart: 42,
  contentEnd: 43,
  partNeed: 44,
} as const;
export const FACT_WORDS = 45;

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

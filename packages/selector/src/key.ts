import { keylessHash } from "./draw.ts";
import { FACT } from "./facts.ts";
import { HEAD, type HeadFacts, KEY_SOURCES, type KeySource, OUT, PATH } from "./router.ts";
import { xxh32Bits } from "./xxh32.ts";

/** Bytes of a chat's system part, and again of its first user message, that are its key. */
const CHAT_KEY_BYTES = 4096;
/** Bytes of a raw prompt, an embedding's input, a query or tokens that are its key. */
const PROMPT_KEY_BYTES = 1024;

const place = (source: KeySource): number => KEY_SOURCES.indexOf(source);

/** Places in `KEY_SOURCES`. */
const SOURCE = {
  header: place("header"),
  promptCacheKey: place("prompt_cache_key"),
  previousResponseId: place("previous_response_id"),
  conversation: place("conversation"),
  sessionId: place("session_id"),
  prompt: place("prompt"),
  none: place("none"),
} as const;

/**
 * Finds the request's key and writes its source and both hashes. First found: session header, `prompt_cache_key`,
 * `previous_response_id` where the engine that has it is known, `conversation`, `metadata.session_id`, the prompt. A
 * tenant's hash is the seed, so that one key of two tenants is two.
 *
 * The prompt of a conversation is the raw value of `system` or `instructions`, then the raw content of the system and
 * developer messages that stand before the first user message, and of that one: it stays as turns are appended, and
 * conversations that share a system prompt, however long, spread. The pieces are hashed in a chain, each hash the seed of
 * the next, so that nothing is copied.
 *
 * @param source the bytes that the spans of `facts` point into
 * @param count differs from call to call; spreads requests without a key
 */
export function writeKey(
  head: HeadFacts,
  source: Uint8Array,
  facts: Uint32Array,
  count: number,
  out: Uint32Array,
): void {
  const tenant = head.words[HEAD.tenant]!;
  const seed2 = (tenant + 1) >>> 0;
  const headerBytes = Math.min(head.words[HEAD.sessionKeyBytes]!, head.bytes.length);
  if (headerBytes > 0) {
    write(out, SOURCE.header, head.bytes, 0, headerBytes, tenant, seed2);
    return;
  }
  const isFollowed = head.words[HEAD.followed]! > 0;
  for (let i = 0; i < TEXT_SOURCES.length; i += 2) {
    const start = facts[TEXT_SOURCES[i]!]!;
    const end = facts[TEXT_SOURCES[i]! + 1]!;
    if (end > start && (isFollowed || TEXT_SOURCES[i + 1] !== SOURCE.previousResponseId)) {
      write(out, TEXT_SOURCES[i + 1]!, source, start, end, tenant, seed2);
      return;
    }
  }
  const path = head.words[HEAD.path]!;
  const at = promptOf(path);
  if (at !== NO_PROMPT) {
    const start = facts[at]!;
    const end = Math.min(facts[at + 1]!, start + PROMPT_KEY_BYTES);
    if (end > start) {
      write(out, SOURCE.prompt, source, start, end, tenant, seed2);
      return;
    }
  }
  if (writeConversationKey(path, source, facts, out, tenant, seed2)) return;
  out[OUT.keySource] = SOURCE.none;
  out[OUT.keyHash] = keylessHash(count, tenant);
  out[OUT.keyHash2] = keylessHash(count, seed2);
}

/** Where the facts have what a path's prompt is, unless it is a conversation. */
function promptOf(path: number): number {
  switch (path) {
    case PATH.completions:
    case PATH.tokenize:
      return FACT.promptStart;
    case PATH.embeddings:
      return FACT.inputStart;
    case PATH.rerank:
    case PATH.score:
      return FACT.queryStart;
    case PATH.detokenize:
      return FACT.tokensStart;
    default:
      return NO_PROMPT;
  }
}

const NO_PROMPT = -1;

/** Pairs: the first place of a span in `facts`, and the source that it is. */
const TEXT_SOURCES: Uint32Array = Uint32Array.of(
  FACT.cacheKeyStart,
  SOURCE.promptCacheKey,
  FACT.previousStart,
  SOURCE.previousResponseId,
  FACT.conversationStart,
  SOURCE.conversation,
  FACT.sessionStart,
  SOURCE.sessionId,
);

function write(
  out: Uint32Array,
  keySource: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  seed: number,
  seed2: number,
): void {
  out[OUT.keySource] = keySource;
  out[OUT.keyHash] = xxh32Bits(bytes, start, end, seed);
  out[OUT.keyHash2] = xxh32Bits(bytes, start, end, seed2);
}

/** False where there is nothing to make a key of. */
function writeConversationKey(
  path: number,
  source: Uint8Array,
  facts: Uint32Array,
  out: Uint32Array,
  seed: number,
  seed2: number,
): boolean {
  let hash = seed;
  let hash2 = seed2;
  let left = CHAT_KEY_BYTES;
  const hasSystem = path === PATH.messages || path === PATH.countTokens || path === PATH.responses;
  const pieces = facts[FACT.pieceCount]!;
  for (let i = hasSystem ? -1 : 0; i < pieces && left > 0; i++) {
    const place = i < 0 ? FACT.systemStart : FACT.pieces + 2 * i;
    const start = facts[place]!;
    const end = Math.min(facts[place + 1]!, start + left);
    if (end === start) continue;
    hash = xxh32Bits(source, start, end, hash);
    hash2 = xxh32Bits(source, start, end, hash2);
    left -= end - start;
  }
  // A responses' input that is one text is the user's; a list that has no message of theirs is told by its beginning.
  const isInput = path === PATH.responses && facts[FACT.userStart] === facts[FACT.userEnd];
  const place = isInput ? FACT.inputStart : FACT.userStart;
  const start = facts[place]!;
  const end = Math.min(facts[place + 1]!, start + CHAT_KEY_BYTES);
  if (end > start) {
    hash = xxh32Bits(source, start, end, hash);
    hash2 = xxh32Bits(source, start, end, hash2);
  } else if (left === CHAT_KEY_BYTES) {
    return false;
  }
  out[OUT.keySource] = SOURCE.prompt;
  out[OUT.keyHash] = hash;
  out[OUT.keyHash2] = hash2;
  return true;
}

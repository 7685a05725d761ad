import { keylessHash } from "./draw.ts";
import { FACT } from "./facts.ts";
import { HEAD, type HeadFacts, KEY_SOURCES, type KeySource, OUT, PATH } from "./router.ts";
import { xxh32Bits } from "./xxh32.ts";

/** Bytes of a chat's system part, and again of its first user message, that are its key. */
const CHAT_KEY_BYTES = 4096;
/** Bytes of a raw prompt or an embedding's input that are its key. */
const PROMPT_KEY_BYTES = 1024;

const place = (source: KeySource): number => KEY_SOURCES.indexOf(source);

/** Places in `KEY_SOURCES`. */
const SOURCE = {
  header: place("header"),
  promptCacheKey: place("prompt_cache_key"),
  conversation: place("conversation"),
  sessionId: place("session_id"),
  prompt: place("prompt"),
  none: place("none"),
} as const;

/**
 * Finds the request's key and writes its source and both hashes. First found: session header, `prompt_cache_key`,
 * `conversation`, `metadata.session_id`, the prompt. A tenant's hash is the seed, so that one key of two tenants is two.
 *
 * The key of a chat is the raw content of the system and developer messages that stand before the first user message, and
 * of that one: it stays as turns are appended, and conversations that share a system prompt, however long, spread. The
 * pieces are hashed in a chain, each hash the seed of the next, so that nothing is copied.
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
  for (let i = 0; i < TEXT_SOURCES.length; i += 2) {
    const start = facts[TEXT_SOURCES[i]!]!;
    const end = facts[TEXT_SOURCES[i]! + 1]!;
    if (end > start) {
      write(out, TEXT_SOURCES[i + 1]!, source, start, end, tenant, seed2);
      return;
    }
  }
  const path = head.words[HEAD.path]!;
  if (path === PATH.chat) {
    if (writeChatKey(source, facts, out, tenant, seed2)) return;
  } else {
    const at = path === PATH.embeddings ? FACT.inputStart : FACT.promptStart;
    const start = facts[at]!;
    const end = Math.min(facts[at + 1]!, start + PROMPT_KEY_BYTES);
    if (end > start) {
      write(out, SOURCE.prompt, source, start, end, tenant, seed2);
      return;
    }
  }
  out[OUT.keySource] = SOURCE.none;
  out[OUT.keyHash] = keylessHash(count, tenant);
  out[OUT.keyHash2] = keylessHash(count, seed2);
}

/** Pairs: the first place of a span in `facts`, and the source that it is. */
const TEXT_SOURCES: Uint32Array = Uint32Array.of(
  FACT.cacheKeyStart,
  SOURCE.promptCacheKey,
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

/** False where there is no message to make a key of. */
function writeChatKey(source: Uint8Array, facts: Uint32Array, out: Uint32Array, seed: number, seed2: number): boolean {
  const pieces = facts[FACT.pieceCount]!;
  let hash = seed;
  let hash2 = seed2;
  let left = CHAT_KEY_BYTES;
  for (let i = 0; i < pieces && left > 0; i++) {
    const start = facts[FACT.pieces + 2 * i]!;
    const end = Math.min(facts[FACT.pieces + 2 * i + 1]!, start + left);
    hash = xxh32Bits(source, start, end, hash);
    hash2 = xxh32Bits(source, start, end, hash2);
    left -= end - start;
  }
  const start = facts[FACT.userStart]!;
  const end = Math.min(facts[FACT.userEnd]!, start + CHAT_KEY_BYTES);
  if (end > start) {
    hash = xxh32Bits(source, start, end, hash);
    hash2 = xxh32Bits(source, start, end, hash2);
  } else if (pieces === 0) {
    return false;
  }
  out[OUT.keySource] = SOURCE.prompt;
  out[OUT.keyHash] = hash;
  out[OUT.keyHash2] = hash2;
  return true;
}

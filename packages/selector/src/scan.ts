import { FACT, PIECES_MAX, USE } from "./facts.ts";
import {
  beginBody,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  hadEscape,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
  UNUSUAL,
} from "./json-bytes.ts";
import { NEED } from "./router.ts";
import {
  readCount,
  readFormatType,
  readItemType,
  readPartType,
  readRaw,
  readRole,
  readText,
  readThinkingType,
} from "./scan-leaves.ts";
import { KIND, type Kind, LIST, type List, MEMBER, type Member, memberOf, ROLE } from "./scan-names.ts";

/**
 * Reads what routing needs from the bytes of a JSON object, without building values. It walks every top-level name: JSON
 * parsers take the last of two equal names, so stopping at the first `model` would route by one and serve another.
 *
 * Gives false, `facts` then meaning nothing, for whatever is not plain: names that stand twice or have an escape where a
 * wanted one may stand, an escape inside a wanted string, numbers and nulls whose meaning is not plain, a byte order
 * mark, nesting beyond `DEPTH_MAX`, and all that is not JSON. `JSON.parse` decides those.
 *
 * @param facts places: `FACT`
 * @param canonical the body is `JSON.stringify`'s own, so escapes inside wanted strings are the only way to write them
 */
export function scan(body: Uint8Array, facts: Uint32Array, canonical = false): boolean {
  facts.fill(0);
  beginBody(body);
  const start = skipSpace(body, 0);
  if (start >= body.length || body[start] !== OPEN_BRACE) return false;
  const after = readObject(KIND.body, body, start, facts, canonical);
  return after >= 0 && skipSpace(body, after) === body.length;
}

function readObject(kind: Kind, body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  let seen = 0;
  let at = skipSpace(body, start + 1);
  if (at < body.length && body[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    if (at >= body.length || body[at] !== QUOTE) return UNUSUAL;
    const nameStart = at + 1;
    at = skipString(body, nameStart);
    if (at < 0) return UNUSUAL;
    // Escaped, a name may be any of those wanted. JSON.stringify escapes none of them.
    if (hadEscape && !canonical) return UNUSUAL;
    const member = memberOf(kind, body, nameStart, at - 1);
    if (member !== MEMBER.other && member !== MEMBER.guided) {
      const bit = 1 << member;
      if ((seen & bit) !== 0) return UNUSUAL;
      seen |= bit;
    }
    at = skipColon(body, at);
    if (at < 0 || at >= body.length) return UNUSUAL;
    at = member === MEMBER.other ? skipValue(body, at) : readMember(member, body, at, facts, canonical);
    if (at < 0) return UNUSUAL;
    at = skipSpace(body, at);
    if (at >= body.length) return UNUSUAL;
    if (body[at] === CLOSE_BRACE) return at + 1;
    if (body[at] !== COMMA) return UNUSUAL;
    at = skipSpace(body, at + 1);
  }
}

function readMember(member: Member, body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  const first = body[start]!;
  switch (member) {
    case MEMBER.model:
      if (first !== QUOTE && first !== NULL) facts[FACT.modelIsOdd] = 1;
      return readText(FACT.modelStart, body, start, facts, canonical);
    case MEMBER.promptCacheKey:
      return readText(FACT.cacheKeyStart, body, start, facts, canonical);
    case MEMBER.previousResponseId:
      return readText(FACT.previousStart, body, start, facts, canonical);
    case MEMBER.sessionId:
      return readText(FACT.sessionStart, body, start, facts, canonical);
    case MEMBER.conversationId:
      return readText(FACT.conversationStart, body, start, facts, canonical);
    case MEMBER.conversation:
      if (first === OPEN_BRACE) return readObject(KIND.conversation, body, start, facts, canonical);
      return readText(FACT.conversationStart, body, start, facts, canonical);
    case MEMBER.metadata:
      if (first === OPEN_BRACE) return readObject(KIND.metadata, body, start, facts, canonical);
      break;
    case MEMBER.stream:
      if (first === TRUE) facts[FACT.stream] = 1;
      break;
    case MEMBER.store:
      if (first === TRUE) facts[FACT.store] = 1;
      break;
    case MEMBER.background:
      if (first === TRUE) facts[FACT.background] = 1;
      break;
    case MEMBER.tools:
    case MEMBER.functions:
      if (first === OPEN_BRACKET && body[skipSpace(body, start + 1)] !== CLOSE_BRACKET) facts[FACT.uses]! |= NEED.tools;
      break;
    case MEMBER.reasoning:
    case MEMBER.reasoningEffort:
      if (first !== NULL) facts[FACT.uses]! |= USE.reasoning;
      break;
    case MEMBER.thinking:
      if (first === OPEN_BRACE) return readObject(KIND.thinking, body, start, facts, canonical);
      break;
    case MEMBER.thinkingType:
      return readThinkingType(body, start, facts, canonical);
    case MEMBER.structuredOutputs:
      if (first !== NULL) facts[FACT.uses]! |= NEED.jsonSchema;
      break;
    case MEMBER.guided:
      // Of names with this beginning there may be many, and one may stand twice: the last counts. Without nulls the order
      // doesn't matter.
      if (first !== NULL) facts[FACT.uses]! |= NEED.jsonSchema;
      else if (!canonical) return UNUSUAL;
      break;
    case MEMBER.maxTokens:
    case MEMBER.maxCompletionTokens:
    case MEMBER.maxOutputTokens:
      return readCount(FACT.maxTokens, body, start, facts, canonical);
    case MEMBER.choices:
      return readCount(FACT.choices, body, start, facts, canonical);
    case MEMBER.text:
    case MEMBER.outputConfig:
      if (first === OPEN_BRACE) return readObject(KIND.text, body, start, facts, canonical);
      break;
    case MEMBER.responseFormat:
    case MEMBER.outputFormat:
    case MEMBER.textFormat:
      if (first === OPEN_BRACE) return readObject(KIND.format, body, start, facts, canonical);
      break;
    case MEMBER.formatType:
      return readFormatType(body, start, facts, canonical);
    case MEMBER.messages:
      if (first !== OPEN_BRACKET) break;
      facts[FACT.hasMessages] = 1;
      return readList(LIST.messages, body, start, facts, canonical);
    case MEMBER.prompt:
      facts[FACT.promptIsList] = first === OPEN_BRACKET ? 1 : 0;
      return readRaw(FACT.promptStart, body, start, facts);
    case MEMBER.input: {
      if (first !== OPEN_BRACKET) return readRaw(FACT.inputStart, body, start, facts);
      facts[FACT.inputIsList] = 1;
      const after = readList(LIST.items, body, start, facts, canonical);
      facts[FACT.inputStart] = start;
      facts[FACT.inputEnd] = Math.max(after, 0);
      return after;
    }
    case MEMBER.query:
    case MEMBER.queries:
    case MEMBER.text1:
      return readRaw(FACT.queryStart, body, start, facts);
    case MEMBER.tokens:
      return readRaw(FACT.tokensStart, body, start, facts);
    case MEMBER.system:
    case MEMBER.instructions:
      return readRaw(FACT.systemStart, body, start, facts);
    case MEMBER.role:
      return readRole(body, start, facts, canonical);
    case MEMBER.itemType:
      return readItemType(body, start, facts, canonical);
    case MEMBER.content: {
      const after =
        first === OPEN_BRACKET ? readList(LIST.parts, body, start, facts, canonical) : skipValue(body, start);
      facts[FACT.contentStart] = start;
      facts[FACT.contentEnd] = Math.max(after, 0);
      return after;
    }
    case MEMBER.output:
      if (first === OPEN_BRACKET) return readList(LIST.parts, body, start, facts, canonical);
      break;
    case MEMBER.partType:
      return readPartType(FACT.partNeed, body, start, facts, canonical);
    case MEMBER.partContent:
      if (first === OPEN_BRACKET) return readList(LIST.innerParts, body, start, facts, canonical);
      break;
    case MEMBER.innerType:
      return readPartType(FACT.innerNeed, body, start, facts, canonical);
  }
  return skipValue(body, start);
}

/** The elements of `messages`, of a responses' `input`, of a message's `content`, or of a part's. */
function readList(list: List, body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  let at = skipSpace(body, start + 1);
  if (at < body.length && body[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    if (at >= body.length) return UNUSUAL;
    const elementStart = at;
    if (body[at] !== OPEN_BRACE) {
      at = skipValue(body, at);
      if (at < 0) return UNUSUAL;
    } else if (list === LIST.messages || list === LIST.items) {
      facts[FACT.role] = ROLE.other;
      facts[FACT.isCall] = 0;
      facts[FACT.contentStart] = 0;
      facts[FACT.contentEnd] = 0;
      at = readObject(list === LIST.items ? KIND.item : KIND.message, body, at, facts, canonical);
      if (at < 0) return UNUSUAL;
      endMessage(facts);
    } else {
      const isInner = list === LIST.innerParts;
      const place = isInner ? FACT.innerNeed : FACT.partNeed;
      facts[place] = 0;
      at = readObject(isInner ? KIND.innerPart : KIND.part, body, at, facts, canonical);
      if (at < 0) return UNUSUAL;
      const need = facts[place]!;
      if (need !== 0) {
        facts[FACT.uses]! |= need;
        facts[FACT.mediaBytes]! += at - elementStart;
      }
    }
    at = skipSpace(body, at);
    if (at >= body.length) return UNUSUAL;
    if (body[at] === CLOSE_BRACKET) return at + 1;
    if (body[at] !== COMMA) return UNUSUAL;
    at = skipSpace(body, at + 1);
  }
}

/**
 * What a message, now read whole, means for the key. System messages after the first user message are not part of it:
 * they come with later turns, and the key must not change as turns are appended.
 */
function endMessage(facts: Uint32Array): void {
  const role = facts[FACT.role]!;
  if (role === ROLE.turn || facts[FACT.isCall] === 1) {
    facts[FACT.hasTurn] = 1;
    return;
  }
  if (facts[FACT.hasUser] === 1) return;
  const start = facts[FACT.contentStart]!;
  const end = facts[FACT.contentEnd]!;
  if (role === ROLE.user) {
    facts[FACT.hasUser] = 1;
    facts[FACT.userStart] = start;
    facts[FACT.userEnd] = end;
    return;
  }
  const count = facts[FACT.pieceCount]!;
  if (role !== ROLE.system || start === end || count === PIECES_MAX) return;
  facts[FACT.pieces + 2 * count] = start;
  facts[FACT.pieces + 2 * count + 1] = end;
  facts[FACT.pieceCount] = count + 1;
}

const TRUE = 0x74;
const NULL = 0x6e;

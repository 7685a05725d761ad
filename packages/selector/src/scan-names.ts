import { equals } from "./json-bytes.ts";
import { NEED } from "./router.ts";

/** The objects of a body whose names mean something. `item`: of a list of `input`; `innerPart`: within a part. */
export const KIND = {
  body: 0,
  message: 1,
  item: 2,
  part: 3,
  innerPart: 4,
  format: 5,
  text: 6,
  metadata: 7,
  conversation: 8,
  thinking: 9,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

/**
 * Wanted names. Those of one object that were seen are bits of a word, the number's low five bits naming the bit: a body's
 * own are 1 to 31, and those of no other kind of object are 32 apart.
 */
export const MEMBER = {
  other: 0,
  model: 1,
  stream: 2,
  messages: 3,
  prompt: 4,
  input: 5,
  tools: 6,
  functions: 7,
  responseFormat: 8,
  text: 9,
  maxTokens: 10,
  maxCompletionTokens: 11,
  maxOutputTokens: 12,
  promptCacheKey: 13,
  conversation: 14,
  metadata: 15,
  store: 16,
  reasoning: 17,
  reasoningEffort: 18,
  background: 19,
  previousResponseId: 20,
  choices: 21,
  system: 22,
  instructions: 23,
  thinking: 24,
  outputFormat: 25,
  outputConfig: 26,
  structuredOutputs: 27,
  query: 28,
  queries: 29,
  text1: 30,
  tokens: 31,
  /** Any `guided_*`, of which there may be many. */
  guided: 32,
  role: 33,
  content: 34,
  output: 35,
  itemType: 36,
  partType: 37,
  partContent: 38,
  innerType: 39,
  formatType: 40,
  textFormat: 41,
  sessionId: 42,
  conversationId: 43,
  thinkingType: 44,
} as const;
export type Member = (typeof MEMBER)[keyof typeof MEMBER];

export const LIST = { messages: 0, items: 1, parts: 2, innerParts: 3 } as const;
export type List = (typeof LIST)[keyof typeof LIST];

/** Roles, as far as they matter: `turn` is an assistant's, a tool's or a function's. */
export const ROLE = { other: 0, system: 1, user: 2, turn: 3 } as const;

/** The type of a response format that asks nothing of an engine. */
export const FORMAT_TEXT: Uint8Array = bytes("text");
/** The type of an item of `input` that is a message; every other one is a turn. */
export const ITEM_MESSAGE: Uint8Array = bytes("message");
/** The type of `thinking` that asks for none. */
export const THINKING_DISABLED: Uint8Array = bytes("disabled");

/** The member that a name of this object is; `other` for one that says nothing to a router. */
export function memberOf(kind: Kind, body: Uint8Array, start: number, end: number): Member {
  const length = end - start;
  const candidates = BY_LENGTH[kind]![length < LENGTHS ? length : 0]!;
  for (let i = 0; i < candidates.length; i++) {
    const { name, member } = candidates[i]!;
    if (equals(body, start, end, name)) return member;
  }
  if (kind === KIND.body && length > GUIDED.length && equals(body, start, start + GUIDED.length, GUIDED))
    return MEMBER.guided;
  return MEMBER.other;
}

export function roleOf(body: Uint8Array, start: number, end: number): number {
  return meaningOf(ROLES, body, start, end);
}

/** The need that an engine must meet to take a content part of this type; 0 for text and the unknown. */
export function partNeedOf(body: Uint8Array, start: number, end: number): number {
  return meaningOf(PART_NEEDS, body, start, end);
}

function meaningOf(meanings: readonly Meaning[], body: Uint8Array, start: number, end: number): number {
  for (let i = 0; i < meanings.length; i++) {
    const { name, meaning } = meanings[i]!;
    if (equals(body, start, end, name)) return meaning;
  }
  return 0;
}

interface Meaning {
  readonly name: Uint8Array;
  readonly meaning: number;
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const GUIDED: Uint8Array = bytes("guided_");

const ROLES: readonly Meaning[] = [
  { name: bytes("user"), meaning: ROLE.user },
  { name: bytes("assistant"), meaning: ROLE.turn },
  { name: bytes("system"), meaning: ROLE.system },
  { name: bytes("developer"), meaning: ROLE.system },
  { name: bytes("tool"), meaning: ROLE.turn },
  { name: bytes("function"), meaning: ROLE.turn },
];

const PART_NEEDS: readonly Meaning[] = [
  { name: bytes("image_url"), meaning: NEED.vision },
  { name: bytes("input_image"), meaning: NEED.vision },
  { name: bytes("image"), meaning: NEED.vision },
  { name: bytes("input_audio"), meaning: NEED.audio },
  { name: bytes("audio_url"), meaning: NEED.audio },
  { name: bytes("audio"), meaning: NEED.audio },
];

const NAMES: readonly (readonly [Kind, string, Member])[] = [
  [KIND.body, "model", MEMBER.model],
  [KIND.body, "stream", MEMBER.stream],
  [KIND.body, "messages", MEMBER.messages],
  [KIND.body, "prompt", MEMBER.prompt],
  [KIND.body, "input", MEMBER.input],
  [KIND.body, "tools", MEMBER.tools],
  [KIND.body, "functions", MEMBER.functions],
  [KIND.body, "response_format", MEMBER.responseFormat],
  [KIND.body, "text", MEMBER.text],
  [KIND.body, "max_tokens", MEMBER.maxTokens],
  [KIND.body, "max_completion_tokens", MEMBER.maxCompletionTokens],
  [KIND.body, "max_output_tokens", MEMBER.maxOutputTokens],
  [KIND.body, "prompt_cache_key", MEMBER.promptCacheKey],
  [KIND.body, "conversation", MEMBER.conversation],
  [KIND.body, "metadata", MEMBER.metadata],
  [KIND.body, "store", MEMBER.store],
  [KIND.body, "reasoning", MEMBER.reasoning],
  [KIND.body, "reasoning_effort", MEMBER.reasoningEffort],
  [KIND.body, "background", MEMBER.background],
  [KIND.body, "previous_response_id", MEMBER.previousResponseId],
  [KIND.body, "n", MEMBER.choices],
  [KIND.body, "system", MEMBER.system],
  [KIND.body, "instructions", MEMBER.instructions],
  [KIND.body, "thinking", MEMBER.thinking],
  [KIND.body, "output_format", MEMBER.outputFormat],
  [KIND.body, "output_config", MEMBER.outputConfig],
  [KIND.body, "structured_outputs", MEMBER.structuredOutputs],
  [KIND.body, "query", MEMBER.query],
  [KIND.body, "queries", MEMBER.queries],
  [KIND.body, "text_1", MEMBER.text1],
  [KIND.body, "tokens", MEMBER.tokens],
  [KIND.message, "role", MEMBER.role],
  [KIND.message, "content", MEMBER.content],
  [KIND.item, "role", MEMBER.role],
  [KIND.item, "content", MEMBER.content],
  [KIND.item, "output", MEMBER.output],
  [KIND.item, "type", MEMBER.itemType],
  [KIND.part, "type", MEMBER.partType],
  [KIND.part, "content", MEMBER.partContent],
  [KIND.innerPart, "type", MEMBER.innerType],
  [KIND.format, "type", MEMBER.formatType],
  [KIND.text, "format", MEMBER.textFormat],
  [KIND.metadata, "session_id", MEMBER.sessionId],
  [KIND.conversation, "id", MEMBER.conversationId],
  [KIND.thinking, "type", MEMBER.thinkingType],
];

/** One more than the longest name. */
const LENGTHS: number = 1 + Math.max(...NAMES.map(([, name]) => name.length));

/** By kind, then by length of the name; no name has length 0. */
const BY_LENGTH = Object.values(KIND).map((kind) =>
  Array.from({ length: LENGTHS }, (_, length) =>
    NAMES.filter(([ofKind, name]) => ofKind === kind && name.length === length).map(([, name, member]) => ({
      name: bytes(name),
      member,
    })),
  ),
);

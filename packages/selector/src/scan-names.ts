import { equals } from "./json-bytes.ts";
import { NEED } from "./router.ts";

/** The objects of a body whose names mean something. */
export const KIND = { body: 0, message: 1, part: 2, format: 3, text: 4, metadata: 5, conversation: 6 } as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

/** Wanted names. Below 32, since those of one object that were seen are bits of a word. */
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
  guided: 19,
  role: 20,
  content: 21,
  partType: 22,
  formatType: 23,
  textFormat: 24,
  sessionId: 25,
  conversationId: 26,
} as const;
export type Member = (typeof MEMBER)[keyof typeof MEMBER];

export const LIST = { messages: 0, parts: 1 } as const;

/** Roles, as far as they matter: `turn` is an assistant's, a tool's or a function's. */
export const ROLE = { other: 0, system: 1, user: 2, turn: 3 } as const;

/** The type of a response format that asks nothing of an engine. */
export const FORMAT_TEXT: Uint8Array = bytes("text");

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
  [KIND.message, "role", MEMBER.role],
  [KIND.message, "content", MEMBER.content],
  [KIND.part, "type", MEMBER.partType],
  [KIND.format, "type", MEMBER.formatType],
  [KIND.text, "format", MEMBER.textFormat],
  [KIND.metadata, "session_id", MEMBER.sessionId],
  [KIND.conversation, "id", MEMBER.conversationId],
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

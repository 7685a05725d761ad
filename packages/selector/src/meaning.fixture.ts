import type { FixtureBody } from "./body.fixture.ts";
import { FACT, FACT_WORDS, PIECES_MAX, USE } from "./facts.ts";
import { NEED, ROUTE_STATUS } from "./router.ts";
import { scan } from "./scan.ts";
import { canonicalBody, UNUSUAL_MAX_BYTES } from "./unusual.ts";

/** What a body says, read from values instead of bytes. */
interface Meaning {
  readonly model: string;
  readonly cacheKey: string;
  readonly previous: string;
  readonly conversation: string;
  readonly session: string;
  readonly prompt: unknown;
  readonly input: unknown;
  readonly query: unknown;
  readonly tokens: unknown;
  readonly system: unknown;
  readonly user: unknown;
  readonly pieces: readonly unknown[];
  readonly stream: boolean;
  readonly store: boolean;
  readonly background: boolean;
  readonly uses: number;
  readonly maxTokens: number;
  readonly choices: number;
  readonly hasMessages: boolean;
  readonly hasTurn: boolean;
}

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The oracle: what `JSON.parse`'s value says, by the rules of the contract. */
function meaningOf(value: Json): Meaning {
  // Messages, and items of `input`, in the order that they stand in.
  const list = Object.keys(value).flatMap((name) => {
    const elements = name === "messages" || name === "input" ? listOf(value[name]).filter(isObject) : [];
    const isCall = (each: Json) => name === "input" && typeof each.type === "string" && each.type !== "message";
    return elements.map((each) => ({
      each,
      role: isCall(each) ? "tool" : own(each, "role"),
      isItem: name === "input",
    }));
  });
  const firstUser = list.findIndex(({ role }) => role === "user");
  const before = list.slice(0, firstUser === -1 ? list.length : firstUser);
  const parts = list
    .flatMap(({ each, isItem }) => [...listOf(own(each, "content")), ...(isItem ? listOf(own(each, "output")) : [])])
    .flatMap((part) => [part, ...listOf(own(part, "content"))])
    .map((part) => own(part, "type"));
  const nonEmpty = (name: string) => {
    const tools = own(value, name);
    return Array.isArray(tools) && tools.length > 0;
  };
  const formats = [
    own(own(value, "response_format"), "type"),
    own(own(value, "output_format"), "type"),
    own(own(own(value, "text"), "format"), "type"),
    own(own(own(value, "output_config"), "format"), "type"),
  ];
  const thinking = own(own(value, "thinking"), "type");
  const guided = Object.keys(value).some(
    (name) => name.startsWith("guided_") && name !== "guided_" && value[name] !== null,
  );
  const notNull = (name: string) => own(value, name) !== undefined && own(value, name) !== null;
  const conversation = own(value, "conversation");
  const lastOf = (names: readonly string[]) => {
    const last = Object.keys(value).findLast((name) => names.includes(name));
    return last === undefined ? undefined : value[last];
  };
  return {
    model: text(own(value, "model")),
    cacheKey: text(own(value, "prompt_cache_key")),
    previous: text(own(value, "previous_response_id")),
    conversation: text(isObject(conversation) ? own(conversation, "id") : conversation),
    session: text(own(own(value, "metadata"), "session_id")),
    prompt: own(value, "prompt"),
    input: own(value, "input"),
    query: lastOf(["query", "queries", "text_1"]),
    tokens: own(value, "tokens"),
    system: lastOf(["system", "instructions"]),
    user: own(list[firstUser]?.each, "content"),
    pieces: before
      .filter(({ role }) => ["system", "developer"].includes(text(role)))
      .map(({ each }) => own(each, "content"))
      .filter((content) => content !== undefined)
      .slice(0, PIECES_MAX),
    stream: own(value, "stream") === true,
    store: own(value, "store") === true,
    background: own(value, "background") === true,
    uses:
      (nonEmpty("tools") || nonEmpty("functions") ? NEED.tools : 0) |
      (parts.some((type) => ["image_url", "input_image", "image"].includes(text(type))) ? NEED.vision : 0) |
      (parts.some((type) => ["input_audio", "audio_url", "audio"].includes(text(type))) ? NEED.audio : 0) |
      (guided || notNull("structured_outputs") || formats.some((type) => typeof type === "string" && type !== "text")
        ? NEED.jsonSchema
        : 0) |
      (notNull("reasoning") || notNull("reasoning_effort") ? USE.reasoning : 0) |
      (typeof thinking === "string" && thinking !== "disabled" ? USE.reasoning : 0),
    maxTokens: mostOf(value, ["max_tokens", "max_completion_tokens", "max_output_tokens"]),
    choices: mostOf(value, ["n"]),
    hasMessages: Array.isArray(own(value, "messages")),
    hasTurn: list.some(({ role }) => ["assistant", "tool", "function"].includes(text(role))),
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mostOf(value: Json, names: readonly string[]): number {
  const counts = names
    .map((name) => own(value, name))
    .filter((count) => typeof count === "number")
    // Beyond a double's range JSON.parse gives infinity, which says nothing.
    .filter((count) => Number.isFinite(count))
    .map((count) => Math.min(Math.floor(count), 999_999_999));
  return Math.max(0, ...counts);
}

/** What the scan's facts say, their spans read back by `JSON.parse`. */
function meaningOfFacts(source: Uint8Array, facts: Uint32Array): Meaning {
  const raw = (place: number) => Buffer.from(source.subarray(facts[place]!, facts[place + 1]!)).toString("utf8");
  const value = (place: number): unknown => (facts[place + 1] === 0 ? undefined : JSON.parse(raw(place)));
  const content = (place: number): string => (facts[place] === facts[place + 1] ? "" : JSON.parse(`"${raw(place)}"`));
  return {
    model: content(FACT.modelStart),
    cacheKey: content(FACT.cacheKeyStart),
    previous: content(FACT.previousStart),
    conversation: content(FACT.conversationStart),
    session: content(FACT.sessionStart),
    prompt: value(FACT.promptStart),
    input: value(FACT.inputStart),
    query: value(FACT.queryStart),
    tokens: value(FACT.tokensStart),
    system: value(FACT.systemStart),
    user: value(FACT.userStart),
    pieces: Array.from({ length: facts[FACT.pieceCount]! }, (_, i) => value(FACT.pieces + 2 * i)),
    stream: facts[FACT.stream] === 1,
    store: facts[FACT.store] === 1,
    background: facts[FACT.background] === 1,
    uses: facts[FACT.uses]!,
    maxTokens: facts[FACT.maxTokens]!,
    choices: facts[FACT.choices]!,
    hasMessages: facts[FACT.hasMessages] === 1,
    hasTurn: facts[FACT.hasTurn] === 1,
  };
}

/** What the scan made of a body; `wrong` says where it and `JSON.parse` disagree. */
export interface Compared {
  readonly kind: "plain" | "unusual" | "refused" | "tooDeep";
  readonly wrong?: string;
}

const facts = new Uint32Array(FACT_WORDS);

/** Holds the scan's facts of a body against what `JSON.parse` makes of it. */
export function compareWithParse({ bytes, plain }: FixtureBody): Compared {
  const value = parse(bytes);
  const scanned = scan(bytes, facts);
  if (plain && !scanned) return { kind: "unusual", wrong: "a plain body needed JSON.parse" };
  if (!isObject(value)) {
    if (scanned) return { kind: "refused", wrong: "the scan takes what JSON.parse refuses" };
    const status = canonicalBody(bytes);
    const isRefused = status === ROUTE_STATUS.notJson || (status === ROUTE_STATUS.tooUnusual && isBeyondSize(bytes));
    return isRefused ? { kind: "refused" } : { kind: "refused", wrong: "was not refused as no JSON object" };
  }
  const source = scanned ? bytes : canonicalBody(bytes);
  if (typeof source === "number") {
    // Beyond its size an unusual body is refused, whatever it says.
    if (source === ROUTE_STATUS.tooUnusual && isBeyondSize(bytes)) return { kind: "refused" };
    return { kind: "unusual", wrong: "refused, and JSON.parse takes it" };
  }
  if (!scanned && !scan(source, facts, true)) {
    const isDeep = Buffer.from(source.buffer, source.byteOffset, source.length).includes("[".repeat(500));
    return isDeep ? { kind: "tooDeep" } : { kind: "unusual", wrong: "the scan of the canonical body failed" };
  }
  // A number beyond a double's range is infinity to JSON.parse and null to JSON.stringify: unusual bodies are read as that.
  const meant = scanned ? value : (JSON.parse(JSON.stringify(value)) as Json);
  const [found, expected] = [meaningOfFacts(source, facts), meaningOf(meant)].map((each) => JSON.stringify(each));
  const kind = scanned ? "plain" : "unusual";
  return found === expected ? { kind } : { kind, wrong: `${found} instead of ${expected}` };
}

function isBeyondSize({ length }: Uint8Array): boolean {
  return length > UNUSUAL_MAX_BYTES;
}

/** The beginning of a body, for a test's message. */
export function shownBody(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes.subarray(0, 4000)).toString());
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"));
  } catch {
    return undefined;
  }
}

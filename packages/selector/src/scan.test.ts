import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { randomBody } from "./body.fixture.ts";
import { FACT, FACT_WORDS, PIECES_MAX, USE } from "./facts.ts";
import { NEED, ROUTE_STATUS } from "./router.ts";
import { scan } from "./scan.ts";
import { canonicalBody } from "./unusual.ts";

/** What a body says, read from values instead of bytes. */
interface Meaning {
  readonly model: string;
  readonly cacheKey: string;
  readonly conversation: string;
  readonly session: string;
  readonly prompt: unknown;
  readonly input: unknown;
  readonly user: unknown;
  readonly pieces: readonly unknown[];
  readonly stream: boolean;
  readonly store: boolean;
  readonly uses: number;
  readonly maxTokens: number;
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
  const messages = own(value, "messages");
  const list = Array.isArray(messages) ? messages.filter(isObject) : [];
  const roles = list.map((message) => own(message, "role"));
  const firstUser = roles.indexOf("user");
  const before = list.slice(0, firstUser === -1 ? list.length : firstUser);
  const parts = list.flatMap((message) => {
    const content = own(message, "content");
    return Array.isArray(content) ? content.map((part) => own(part, "type")) : [];
  });
  const nonEmpty = (name: string) => {
    const tools = own(value, name);
    return Array.isArray(tools) && tools.length > 0;
  };
  const formats = [own(own(value, "response_format"), "type"), own(own(own(value, "text"), "format"), "type")];
  const guided = Object.keys(value).some(
    (name) => name.startsWith("guided_") && name !== "guided_" && value[name] !== null,
  );
  const notNull = (name: string) => own(value, name) !== undefined && own(value, name) !== null;
  const conversation = own(value, "conversation");
  return {
    model: text(own(value, "model")),
    cacheKey: text(own(value, "prompt_cache_key")),
    conversation: text(isObject(conversation) ? own(conversation, "id") : conversation),
    session: text(own(own(value, "metadata"), "session_id")),
    prompt: own(value, "prompt"),
    input: own(value, "input"),
    user: own(list[firstUser], "content"),
    pieces: before
      .filter((message) => ["system", "developer"].includes(text(own(message, "role"))))
      .map((message) => own(message, "content"))
      .filter((content) => content !== undefined)
      .slice(0, PIECES_MAX),
    stream: own(value, "stream") === true,
    store: own(value, "store") === true,
    uses:
      (nonEmpty("tools") || nonEmpty("functions") ? NEED.tools : 0) |
      (parts.some((type) => ["image_url", "input_image", "image"].includes(text(type))) ? NEED.vision : 0) |
      (parts.some((type) => ["input_audio", "audio_url", "audio"].includes(text(type))) ? NEED.audio : 0) |
      (guided || formats.some((type) => typeof type === "string" && type !== "text") ? NEED.jsonSchema : 0) |
      (notNull("reasoning") || notNull("reasoning_effort") ? USE.reasoning : 0),
    maxTokens: Math.max(
      0,
      ...["max_tokens", "max_completion_tokens", "max_output_tokens"]
        .map((name) => own(value, name))
        .filter((tokens) => typeof tokens === "number")
        // Beyond a double's range JSON.parse gives infinity, which says nothing.
        .filter((tokens) => Number.isFinite(tokens))
        .map((tokens) => Math.min(Math.floor(tokens), 999_999_999)),
    ),
    hasMessages: Array.isArray(messages),
    hasTurn: roles.some((role) => ["assistant", "tool", "function"].includes(text(role))),
  };
}

/** What the scan's facts say, their spans read back by `JSON.parse`. */
function meaningOfFacts(source: Uint8Array, facts: Uint32Array): Meaning {
  const raw = (place: number) => Buffer.from(source.subarray(facts[place]!, facts[place + 1]!)).toString("utf8");
  const value = (place: number): unknown => (facts[place + 1] === 0 ? undefined : JSON.parse(raw(place)));
  const content = (place: number): string => (facts[place] === facts[place + 1] ? "" : JSON.parse(`"${raw(place)}"`));
  return {
    model: content(FACT.modelStart),
    cacheKey: content(FACT.cacheKeyStart),
    conversation: content(FACT.conversationStart),
    session: content(FACT.sessionStart),
    prompt: value(FACT.promptStart),
    input: value(FACT.inputStart),
    user: value(FACT.userStart),
    pieces: Array.from({ length: facts[FACT.pieceCount]! }, (_, i) => value(FACT.pieces + 2 * i)),
    stream: facts[FACT.stream] === 1,
    store: facts[FACT.store] === 1,
    uses: facts[FACT.uses]!,
    maxTokens: facts[FACT.maxTokens]!,
    hasMessages: facts[FACT.hasMessages] === 1,
    hasTurn: facts[FACT.hasTurn] === 1,
  };
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

const facts = new Uint32Array(FACT_WORDS);

function scanText(body: string): boolean {
  return scan(Buffer.from(body), facts);
}

describe("scan", () => {
  it("agrees with JSON.parse on 100,000 bodies, plain, odd and broken", () => {
    const random = seededRandom(20260101);
    const seen = { plain: 0, unusual: 0, refused: 0, tooDeep: 0 };
    for (let round = 0; round < 100_000; round++) {
      const { bytes, plain } = randomBody(random);
      const value = parse(bytes);
      const scanned = scan(bytes, facts);
      const fail = (why: string) =>
        expect.fail(`round ${round}: ${why}: ${JSON.stringify(Buffer.from(bytes).toString())}`);
      if (plain && !scanned) fail("a plain body needed JSON.parse");
      if (!isObject(value)) {
        seen.refused++;
        if (scanned) fail("the scan takes what JSON.parse refuses");
        if (canonicalBody(bytes) !== ROUTE_STATUS.notJson) fail("was not refused as no JSON object");
        continue;
      }
      const source = scanned ? bytes : canonicalBody(bytes);
      if (typeof source === "number") return fail("refused, and JSON.parse takes it");
      if (!scanned && !scan(source, facts, true)) {
        seen.tooDeep++;
        if (!Buffer.from(source).includes("[".repeat(500))) fail("the scan of the canonical body failed");
        continue;
      }
      if (scanned) seen.plain++;
      else seen.unusual++;
      const [found, expected] = [meaningOfFacts(source, facts), meaningOf(value)];
      if (JSON.stringify(found) !== JSON.stringify(expected))
        fail(`${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
    }
    // So that the test can't pass by never meeting one of them.
    expect(seen.plain).toBeGreaterThan(30_000);
    expect(seen.unusual).toBeGreaterThan(10_000);
    expect(seen.refused).toBeGreaterThan(10_000);
    expect(seen.tooDeep).toBeGreaterThan(100);
  }, 120_000);

  it.each([
    ["a name that stands twice", '{"model":"a","model":"b"}'],
    ["an escaped name", '{"mod\\u0065l":"a"}'],
    ["an escape in the model", '{"model":"a\\/b"}'],
    ["a byte order mark", '\ufeff{"model":"a"}'],
    ["garbage after the object", '{"model":"a"}}'],
    ["a role that stands twice", '{"messages":[{"role":"user","role":"system"}]}'],
    ["nesting beyond the bound", `{"a":${"[".repeat(513)}1${"]".repeat(513)}}`],
    ["a token count beyond nine digits", '{"max_tokens":1234567890}'],
  ])("leaves %s to JSON.parse", (_, body) => {
    expect(scanText(body)).toBe(false);
  });

  it.each([
    ["a name twice that says nothing to routing", '{"model":"a","x":1,"x":2}'],
    ["escapes in prompts", '{"messages":[{"role":"user","content":"a\\"b\\u0041\\n"}]}'],
    ["nesting up to the bound", `{"a":${"[".repeat(512)}1${"]".repeat(512)}}`],
    ["indentation", '{\n\t"model" : "a",\r\n "stream": true }\n'],
  ])("reads %s itself", (_, body) => {
    expect(scanText(body)).toBe(true);
  });

  it.each([
    ["a control character in a string", '{"a":"x\ny"}'],
    ["an unknown escape", '{"a":"\\x"}'],
    ["a short \\u", '{"a":"\\u12G4"}'],
    ["a leading zero", '{"a":01}'],
    ["a bare minus", '{"a":-}'],
    ["a point without digits", '{"a":1.}'],
    ["an exponent without digits", '{"a":1e+}'],
    ["a trailing comma", '{"a":1,}'],
    ["a trailing comma in a list", '{"a":[1,]}'],
    ["brackets that don't match", '{"a":[1}}'],
    ["a missing colon", '{"a" 1}'],
    ["a name without quotes", "{a:1}"],
    ["single quotes", "{'a':1}"],
    ["a literal in capitals", '{"a":True}'],
    ["NaN", '{"a":NaN}'],
    ["a comment", '{"a":1/**/}'],
    ["a no-break space", '{"a":\u00a01}'],
    ["an end in the middle of a string", '{"a":"x'],
    ["an end after a backslash", '{"a":"x\\'],
    ["an end after a colon", '{"a":'],
  ])("takes %s for no JSON, alone and in a long string's company", (_, body) => {
    expect(scanText(body)).toBe(false);
    expect(canonicalBody(Buffer.from(body))).toBe(ROUTE_STATUS.notJson);
    const long = body.replace("{", `{"long":"${"text ".repeat(50)}",`);
    expect(scanText(long)).toBe(false);
  });

  it("takes bytes that are not UTF-8 as they come inside strings, as a decoder would, and nowhere else", () => {
    expect(scan(Buffer.from('{"a":"\xff\xc0"}', "latin1"), facts)).toBe(true);
    expect(scan(Buffer.from('{"a":\xff}', "latin1"), facts)).toBe(false);
  });

  it("finds a control character anywhere in a long body, at any offset of memory", () => {
    const memory = new Uint8Array(140_100);
    const prefix = '{"a":"';
    for (const length of [64, 65_530, 65_540, 131_080, 140_000]) {
      for (const offset of [0, 1, 2, 3]) {
        const body = memory.subarray(offset, offset + length);
        body.fill(0x61);
        body.set(Buffer.from(prefix));
        body.set(Buffer.from('"}'), length - 2);
        expect(scan(body, facts)).toBe(true);
        for (const at of [prefix.length, 40, length >> 1, length - 5, length - 3]) {
          body[at] = 0x1f;
          expect(scan(body, facts)).toBe(false);
          body[at] = 0x61;
        }
      }
    }
  });

  it("steps over a string of escapes in time that grows with its length, not with its square", () => {
    const steps = (count: number) => {
      const body = Buffer.from(`{"a":"${"\\n".repeat(count)}"}`);
      const started = performance.now();
      expect(scan(body, facts)).toBe(true);
      return performance.now() - started;
    };
    steps(200_000);
    // 2 MB took the square of a second when every escape looked for the end again; linear is some tens of ms.
    expect(steps(1_000_000)).toBeLessThan(2000);
  });

  it("counts the bytes of images and audio apart from text", () => {
    const image = `{"type":"image_url","image_url":{"url":"data:${"A".repeat(5000)}"}}`;
    expect(scanText(`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},${image}]}]}`)).toBe(true);
    expect(facts[FACT.mediaBytes]).toBe(image.length);
  });
});

describe("canonicalBody", () => {
  it("lets the last of two equal names win", () => {
    expect(Buffer.from(canonicalBody(Buffer.from('{"model":"a","model":"b"}')) as Uint8Array).toString()).toBe(
      '{"model":"b"}',
    );
  });

  it("refuses a body beyond 1 MiB, and one that is no object", () => {
    expect(canonicalBody(Buffer.alloc(1_048_577, 0x20))).toBe(ROUTE_STATUS.tooUnusual);
    for (const body of ["[]", "null", "1", '"{}"', ""])
      expect(canonicalBody(Buffer.from(body))).toBe(ROUTE_STATUS.notJson);
  });

  it("refuses nesting that overflows the stack, without throwing", () => {
    const body = Buffer.from(`{"a":${"[".repeat(400_000)}${"]".repeat(400_000)}}`);
    expect(canonicalBody(body)).toBe(ROUTE_STATUS.tooUnusual);
  });
});

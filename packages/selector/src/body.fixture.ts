import type { Random } from "@guidevane/core";

/** A made-up body, and whether it is plain: JSON without any oddity that the scan leaves to `JSON.parse`. */
export interface FixtureBody {
  readonly bytes: Uint8Array;
  readonly plain: boolean;
}

/**
 * Bodies as clients send them and as they shouldn't: about half plain, others with equal names, escaped names and values,
 * odd numbers, deep nesting, bytes that are not UTF-8, a byte order mark, cut off, garbled or followed by garbage.
 */
export function randomBody(random: Random): FixtureBody {
  const writer = new BodyWriter(random, random() < 0.5);
  let text = writer.body();
  let plain = writer.plain;
  if (plain && random() < 0.6) return { bytes: encoder.encode(text), plain: true };
  const kind = Math.floor(random() * 10);
  if (kind === 0) text = `\ufeff${text}`;
  if (kind === 1) text += pick(random, ["}", "x", "{}", ",", "\u00a0", "\0", " null", "\ufeff"]);
  if (kind === 2) text = text.slice(0, Math.floor(random() * text.length));
  if (kind === 3) text = pick(random, ["[", '"', "1", "null", "", " ", "[{}]", "true", "nul", "{", '{"', "-", "{,}"]);
  let bytes: Uint8Array = encoder.encode(text);
  if (kind >= 4 && kind <= 7 && bytes.length > 0) bytes = garble(random, bytes);
  plain = plain && kind > 7;
  return { bytes, plain };
}

/**
 * A made-up body of any size from 0 to 4 MiB: now and then one long text stands in it, of plain, escaped or any characters.
 */
export function randomLongBody(random: Random): FixtureBody {
  const body = randomBody(random);
  if (random() < 0.995) return body;
  const at = Buffer.from(body.bytes).indexOf("{");
  if (at < 0) return body;
  const unit = pick(random, ["plain text ", "\\n", "\\u00e9", "é世🌍", '\\"', "{[,:]}", "\\\\"]);
  const bytes = 2 ** (22 * random());
  const long = `"long":"${unit.repeat(Math.ceil(bytes / unit.length / 3))}"${body.bytes[at + 1] === 0x7d ? "" : ","}`;
  const whole = Buffer.concat([body.bytes.subarray(0, at + 1), Buffer.from(long), body.bytes.subarray(at + 1)]);
  return { bytes: whole, plain: false };
}

const encoder = new TextEncoder();

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

/** One to three bytes changed, taken out or put in. */
function garble(random: Random, bytes: Uint8Array): Uint8Array {
  const list = Array.from(bytes);
  const edits = 1 + Math.floor(random() * 3);
  for (let i = 0; i < edits; i++) {
    const at = Math.floor(random() * list.length);
    const byte = random() < 0.6 ? pick(random, SHARP_BYTES) : Math.floor(random() * 256);
    const kind = random();
    if (kind < 0.4) list[at] = byte;
    else if (kind < 0.7) list.splice(at, 1);
    else list.splice(at, 0, byte);
  }
  return Uint8Array.from(list);
}

/** What JSON is made of, and what it forbids. */
const SHARP_BYTES: readonly number[] = [
  ...Buffer.from('"\\{}[]:,-+.eE0159tfnu \n\t\r\0/'),
  0x1f,
  0x0b,
  0x7f,
  0x80,
  0xc0,
  0xe2,
  0xff,
];

const NAMES = ["a", "role", "b", "content", "type", "model", "clé"];
const MODELS = ["m-chat", "m-vision", "m-tools", "", "gone", 'm-"quoted"', "modèle", "m-chat\n"];
const TEXTS = [
  "",
  "hi",
  "a longer text ".repeat(12),
  "Grüße, 世界 🌍",
  "\u2028",
  "tab\there",
  'say "no"',
  "back\\slash",
  "{[,]}:",
];
const ROLES = ["system", "developer", "user", "user", "assistant", "tool", "function", "critic", ""];
const ITEM_TYPES = ["message", "message", "function_call", "function_call_output", "reasoning", ""];
const PART_TYPES = ["text", "text", "image_url", "input_image", "image", "input_audio", "audio_url", "audio", "file"];

class BodyWriter {
  /** Turns false with the first oddity. */
  plain = true;
  readonly #random: Random;
  readonly #odd: boolean;
  readonly #space: boolean;

  constructor(random: Random, odd: boolean) {
    this.#random = random;
    this.#odd = odd;
    this.#space = random() < 0.3;
  }

  body(): string {
    const members: string[] = [];
    const add = (chance: number, name: string, value: () => string) => {
      if (this.#random() < chance) members.push(this.#member(name, value()));
    };
    add(0.9, "model", () => this.#wanted(MODELS));
    add(0.5, "stream", () => pick(this.#random, ["true", "false", "null", "1", '"true"']));
    add(0.7, "messages", () => this.#messages());
    add(0.2, "prompt", () => this.#any(2));
    add(0.3, "input", () => (this.#random() < 0.6 ? this.#items() : this.#any(1)));
    add(0.1, "system", () => (this.#random() < 0.5 ? this.#string() : this.#parts()));
    add(0.1, "instructions", () => this.#any(1));
    add(0.1, "previous_response_id", () => this.#wanted(TEXTS));
    add(0.1, "background", () => pick(this.#random, ["true", "false", "null", "1"]));
    add(0.1, "n", () => this.#tokens());
    add(0.05, "query", () => this.#any(1));
    add(0.05, "queries", () => this.#any(2));
    add(0.05, "text_1", () => this.#any(2));
    add(0.05, "tokens", () => this.#any(1));
    add(0.1, "thinking", () => this.#thinking());
    add(0.05, "output_format", () => this.#format());
    add(0.05, "output_config", () => pick(this.#random, ["null", `{"format":${this.#format()}}`, "7"]));
    add(0.05, "structured_outputs", () => pick(this.#random, ["null", '{"regex":"a+"}']));
    add(0.2, "tools", () => pick(this.#random, ["[]", "[ ]", '[{"type":"function"}]', "{}", "null", "[null]"]));
    add(0.1, "functions", () => pick(this.#random, ["[]", '[{"name":"f"}]', "[[]]"]));
    add(0.2, "response_format", () => this.#format());
    add(0.1, "text", () => pick(this.#random, ["null", "{}", `{"format":${this.#format()}}`, '"text"']));
    add(0.1, "guided_json", () => this.#guided());
    add(0.05, "guided_regex", () => this.#guided());
    add(0.02, "guided_", () => this.#guided());
    add(0.3, "max_tokens", () => this.#tokens());
    add(0.1, "max_completion_tokens", () => this.#tokens());
    add(0.1, "max_output_tokens", () => this.#tokens());
    add(0.2, "prompt_cache_key", () => this.#wanted(TEXTS));
    add(0.1, "conversation", () =>
      this.#random() < 0.5 ? this.#wanted(TEXTS) : this.#object([["id", this.#wanted(TEXTS)]]),
    );
    add(0.1, "metadata", () => this.#object([["session_id", this.#wanted(TEXTS)]]));
    add(0.1, "store", () => pick(this.#random, ["true", "false"]));
    add(0.1, "reasoning", () => pick(this.#random, ["null", "{}", '{"effort":"low"}']));
    add(0.1, "reasoning_effort", () => pick(this.#random, ["null", '"low"']));
    add(0.1, "user", () => this.#any(0));
    add(0.3, "temperature", () => this.#number());
    add(0.1, "__proto__", () => this.#any(2));
    add(0.2, "extra_body", () => this.#any(4));
    if (this.#odd && this.#random() < 0.05) {
      this.plain = false;
      members.push(`"deep":${"[".repeat(600)}${"]".repeat(600)}`);
    }
    this.#shuffle(members);
    return `${this.#gap()}{${this.#gap()}${members.join(`${this.#gap()},${this.#gap()}`)}${this.#gap()}}${this.#gap()}`;
  }

  #messages(): string {
    return this.#turns(() => []);
  }

  /** A responses' input: messages with and without a type, calls and their results. */
  #items(): string {
    return this.#turns(() => {
      const members: [string, string][] = [];
      if (this.#random() < 0.6) members.push(["type", this.#wanted(ITEM_TYPES)]);
      if (this.#random() < 0.2) members.push(["output", this.#random() < 0.7 ? this.#parts() : this.#any(1)]);
      return members;
    });
  }

  #turns(more: () => [string, string][]): string {
    const messages = Array.from({ length: Math.floor(this.#random() * 6) }, () => {
      if (this.#random() < 0.03) return this.#odds();
      const members = more();
      if (this.#random() < 0.95) members.push(["role", this.#random() < 0.97 ? this.#wanted(ROLES) : this.#odds()]);
      if (this.#random() < 0.9)
        members.push([
          "content",
          this.#random() < 0.4 ? this.#parts() : this.#random() < 0.9 ? this.#string() : this.#any(1),
        ]);
      if (this.#random() < 0.3) members.push(["name", this.#string()]);
      return this.#object(members);
    });
    return `[${this.#gap()}${messages.join(`,${this.#gap()}`)}${this.#gap()}]`;
  }

  #parts(depth = 2): string {
    const parts = Array.from({ length: Math.floor(this.#random() * 4) }, () => {
      if (this.#random() < 0.1) return this.#odds();
      const members: [string, string][] = [
        ["type", this.#random() < 0.95 ? this.#wanted(PART_TYPES) : this.#odds()],
        ["text", this.#any(1)],
      ];
      if (depth > 0 && this.#random() < 0.15) members.push(["content", this.#parts(depth - 1)]);
      return this.#object(members);
    });
    return `[${parts.join(",")}]`;
  }

  #format(): string {
    return pick(this.#random, [
      '{"type":"text"}',
      '{"type":"json_object"}',
      '{ "type" : "json_schema", "json_schema": {"type": "text"} }',
      "{}",
      "null",
      '{"type":null}',
      '"json_object"',
    ]);
  }

  #thinking(): string {
    if (this.#random() < 0.2) return this.#odds();
    return this.#object([["type", this.#wanted(["enabled", "disabled", "adaptive"])]]);
  }

  #guided(): string {
    if (!this.#odd || this.#random() < 0.5) return pick(this.#random, ["{}", '"a+"', "[1]"]);
    this.plain = false;
    return "null";
  }

  #tokens(): string {
    if (!this.#odd || this.#random() < 0.7)
      return pick(this.#random, ["0", "1", "256", "131072", "null", '"9"', "true"]);
    this.plain = false;
    return pick(this.#random, ["-1", "1e3", "2.5", "12345678901", "1e400", "-0", "1E-3"]);
  }

  /** A string that routing reads: an escape in it is an oddity. */
  #wanted(list: readonly string[]): string {
    const text = pick(this.#random, list);
    if (this.#random() < 0.03) return this.#odds();
    const written = this.#odd && this.#random() < 0.2 ? this.#escaped(text) : JSON.stringify(text);
    if (written.includes("\\")) this.plain = false;
    return written;
  }

  /** A value of a type that is not wanted. */
  #odds(): string {
    return pick(this.#random, ["null", "7", "{}", "[]", "false"]);
  }

  /** A string that routing only steps over. */
  #string(): string {
    const text = pick(this.#random, TEXTS);
    return this.#random() < 0.2 ? this.#escaped(text) : JSON.stringify(text);
  }

  /** With some characters as \u escapes, now and then a half of a pair. */
  #escaped(text: string): string {
    const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
    const written = units.map((unit) => {
      if (this.#random() < 0.3) return `\\u${unit.toString(16).padStart(4, "0")}`;
      if (unit === 0x2f) return "\\/";
      return unit >= 0xd800 && unit <= 0xdfff
        ? `\\u${unit.toString(16)}`
        : JSON.stringify(String.fromCharCode(unit)).slice(1, -1);
    });
    return `"${written.join("")}"`;
  }

  #number(): string {
    return pick(this.#random, [
      "0",
      "-0",
      "1",
      "-1.5",
      "0.7",
      "1e5",
      "1E-7",
      "2.5e+3",
      "12345678901234567890",
      "1e999",
    ]);
  }

  #any(depth: number): string {
    const kind = this.#random();
    if (depth === 0 || kind < 0.4) {
      if (this.#random() < 0.5) return this.#string();
      return pick(this.#random, ["true", "false", "null", this.#number()]);
    }
    const count = Math.floor(this.#random() * 4);
    if (kind < 0.7) return `[${this.#gap()}${Array.from({ length: count }, () => this.#any(depth - 1)).join(",")}]`;
    const first = Math.floor(this.#random() * NAMES.length);
    return this.#object(
      Array.from({ length: count }, (_, i): [string, string] => [
        NAMES[(first + i) % NAMES.length]!,
        this.#any(depth - 1),
      ]),
    );
  }

  #object(members: readonly (readonly [string, string])[]): string {
    const written = members.map(([name, value]) => this.#member(name, value));
    this.#shuffle(written);
    return `{${this.#gap()}${written.join(`${this.#gap()},${this.#gap()}`)}${this.#gap()}}`;
  }

  /** An escaped name and a name that stands twice are oddities, though not everywhere. */
  #member(name: string, value: string): string {
    let written = JSON.stringify(name);
    if (this.#odd && this.#random() < 0.03) {
      written = this.#escaped(name);
      if (written.includes("\\")) this.plain = false;
    }
    const member = `${written}${this.#gap()}:${this.#gap()}${value}`;
    if (!this.#odd || this.#random() > 0.03) return member;
    this.plain = false;
    return `${member},${JSON.stringify(name)}:${this.#any(1)}`;
  }

  #gap(): string {
    return this.#space && this.#random() < 0.3 ? pick(this.#random, [" ", "\n", "\t", "\r\n", "  "]) : "";
  }

  #shuffle(list: string[]): void {
    for (let i = list.length - 1; i > 0; i--) {
      const other = Math.floor(this.#random() * (i + 1));
      [list[i], list[other]] = [list[other]!, list[i]!];
    }
  }
}

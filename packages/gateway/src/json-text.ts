import { QUOTE } from "./json-marks.ts";

/**
 * A text of a JSON document between its quotes, read as bytes that are cut anywhere. One that is whole in one piece is looked
 * at in its place; of one that is cut the beginning is kept.
 */
export class JsonText {
  /** The piece that the whole text is in; none once that piece is over. */
  #source: Buffer = NOTHING;
  #start = 0;
  #length = 0;
  #isCut = false;
  #kept: Buffer = NOTHING;
  #isPlain = true;
  /** The last byte was a backslash that escapes the next one. */
  #escaped = false;

  /** After an opening quote. */
  begin(): void {
    this.#length = 0;
    this.#isCut = false;
    this.#isPlain = true;
    this.#escaped = false;
  }

  /** Bytes as written so far; of a text that was cut 0 where they were not to be kept. */
  get length(): number {
    return this.#length;
  }

  /** Where the text begins in the piece at hand; -1 where it began in another one. */
  get start(): number {
    return this.#isCut ? -1 : this.#start;
  }

  /** The text; null where it is long or has escapes. */
  get value(): string | null {
    if (!this.#isPlain || this.#length > KEPT_MAX) return null;
    const bytes = this.#isCut ? this.#kept : this.#source;
    const start = this.#isCut ? 0 : this.#start;
    return bytes.toString("latin1", start, start + this.#length);
  }

  equals(name: Uint8Array): boolean {
    if (!this.#isPlain || this.#length !== name.length) return false;
    const bytes = this.#isCut ? this.#kept : this.#source;
    const start = this.#isCut ? 0 : this.#start;
    for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
    return true;
  }

  /** @returns the place of the closing quote, or `end` where it is not among the bytes */
  read(bytes: Buffer, start: number, end: number, isKept: boolean): number {
    const quote = this.#closingQuote(bytes, start, end);
    if (quote < end && !this.#isCut) {
      this.#source = bytes;
      this.#start = start;
      this.#length = quote - start;
    } else {
      this.#isCut = true;
      if (isKept) this.#keep(bytes, start, quote);
    }
    return quote;
  }

  /** The piece is over: its memory is not this one's to hold. */
  release(): void {
    this.#source = NOTHING;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (this.#kept === NOTHING) this.#kept = Buffer.alloc(KEPT_MAX);
    let to = this.#length;
    const last = Math.min(end, start + Math.max(KEPT_MAX - to, 0));
    for (let at = start; at < last; at++) this.#kept[to++] = bytes[at]!;
    this.#length += end - start;
  }

  #closingQuote(bytes: Buffer, start: number, end: number): number {
    let at = start;
    if (this.#escaped) {
      this.#escaped = false;
      at += 1;
    }
    while (at < end) {
      // A short text, or one full of escapes, is done before a search would have begun; a long plain one is searched.
      const near = Math.min(end, at + NEAR_BYTES);
      for (; at < near; at++) {
        const byte = bytes[at]!;
        if (byte === QUOTE) return at;
        if (byte === BACKSLASH) {
          this.#isPlain = false;
          at += 1;
        }
      }
      if (at >= end) break;
      const quote = bytes.indexOf(QUOTE, at);
      const stop = quote < 0 || quote > end ? end : quote;
      let backslashes = 0;
      while (stop - backslashes > at && bytes[stop - 1 - backslashes] === BACKSLASH) backslashes += 1;
      if (backslashes > 0) this.#isPlain = false;
      const isEscaped = backslashes % 2 === 1;
      if (!isEscaped && stop < end) return stop;
      at = isEscaped ? stop + 1 : stop;
    }
    this.#escaped = at > end;
    return end;
  }
}

const NOTHING: Buffer = Buffer.alloc(0);
/** Longest text that is kept: ids, names and reasons are shorter. */
const KEPT_MAX = 128;
const NEAR_BYTES = 48;
const BACKSLASH = 0x5c;

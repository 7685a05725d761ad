/** A text of a JSON document between its quotes, read as bytes that are cut anywhere. Its beginning is kept where it is wanted. */
export class JsonText {
  readonly #bytes = Buffer.alloc(KEPT_MAX);
  #length = 0;
  #isPlain = true;
  /** The last byte was a backslash that escapes the next one. */
  #escaped = false;

  /** After an opening quote. */
  begin(): void {
    this.#length = 0;
    this.#isPlain = true;
    this.#escaped = false;
  }

  /** Bytes as written so far; 0 where they were not to be kept. */
  get length(): number {
    return this.#length;
  }

  /** The text; null where it is longer than is kept, or has escapes. */
  get value(): string | null {
    return this.#isPlain && this.#length <= KEPT_MAX ? this.#bytes.toString("latin1", 0, this.#length) : null;
  }

  equals(name: Uint8Array): boolean {
    if (!this.#isPlain || this.#length !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (this.#bytes[at] !== name[at]) return false;
    return true;
  }

  /** @returns the place of the closing quote, or `end` where it is not among the bytes */
  read(bytes: Uint8Array, start: number, end: number, isKept: boolean): number {
    const quote = this.#closingQuote(bytes, start, end);
    if (isKept) {
      let to = this.#length;
      const last = Math.min(quote, start + Math.max(KEPT_MAX - to, 0));
      for (let at = start; at < last; at++) this.#bytes[to++] = bytes[at]!;
      this.#length += quote - start;
    }
    return quote;
  }

  #closingQuote(bytes: Uint8Array, start: number, end: number): number {
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

/** Longest text that is kept: ids, names and reasons are shorter. */
const KEPT_MAX = 128;
const NEAR_BYTES = 48;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

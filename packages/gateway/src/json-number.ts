import { isDigit, MINUS, ZERO } from "./json-marks.ts";

/** A number of a JSON document, read as bytes that are cut anywhere: its whole part, for counts are all that is asked of one. */
export class JsonNumber {
  #whole = 0;
  #sign = 1;
  #part: number = PART.whole;

  /** @param byte its first: a digit or a minus */
  begin(byte: number): void {
    this.#whole = byte === MINUS ? 0 : byte - ZERO;
    this.#sign = byte === MINUS ? -1 : 1;
    this.#part = PART.whole;
  }

  /** The number without its fraction; NaN where it has an exponent. */
  get value(): number {
    return this.#part === PART.exponent ? Number.NaN : this.#sign * this.#whole;
  }

  /** @returns the place of the first byte that is not its own, or `end` where it may go on */
  read(bytes: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) {
      const byte = bytes[at]!;
      if (isDigit(byte)) {
        if (this.#part === PART.whole) this.#whole = this.#whole * 10 + (byte - ZERO);
      } else if (byte === POINT && this.#part === PART.whole) {
        this.#part = PART.fraction;
      } else if (byte === SMALL_E || byte === LARGE_E || byte === MINUS || byte === PLUS) {
        this.#part = PART.exponent;
      } else {
        return at;
      }
    }
    return end;
  }
}

const PART = { whole: 0, fraction: 1, exponent: 2 } as const;

const PLUS = 0x2b;
const POINT = 0x2e;
const LARGE_E = 0x45;
const SMALL_E = 0x65;

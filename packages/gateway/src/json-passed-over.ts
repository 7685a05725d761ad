import { MEANS, SKIP_MEANING } from "./json-marks.ts";

/**
 * A list or object of a JSON document that nobody looks into, read as bytes that are cut anywhere. Only its brackets and
 * quotes are minded; what is between quotes somebody else reads.
 */
export class JsonPassedOver {
  #depth = 0;
  #kind = 0;
  #filled = 0;

  /** After its opening bracket. @param kind one of `VALUE` */
  begin(kind: number): void {
    this.#depth = 1;
    this.#kind = kind;
    this.#filled = 0;
  }

  get kind(): number {
    return this.#kind;
  }

  /** 0 = nothing was in it so far, else 1. */
  get filled(): number {
    return this.#filled;
  }

  /** @returns the place of an opening quote or of its own closing bracket, or `end` where neither is among the bytes */
  read(bytes: Buffer, start: number, end: number): number {
    let depth = this.#depth;
    for (let at = start; at < end; at++) {
      const meaning = SKIP_MEANING[bytes[at]!]!;
      if (meaning === MEANS.nothing) continue;
      if (meaning === MEANS.close) {
        depth -= 1;
        if (depth > 0) continue;
        return at;
      }
      this.#filled = 1;
      if (meaning === MEANS.open) depth += 1;
      else if (meaning === MEANS.quote) {
        this.#depth = depth;
        return at;
      }
    }
    this.#depth = depth;
    return end;
  }
}

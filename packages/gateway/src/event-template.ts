import { QUOTE, SPACE } from "./json-marks.ts";

/**
 * The events of most streams differ in one text and nothing else. This holds an event as it was framed, without that text:
 * another one with the same bytes around a text of its own says the same, and need be neither framed nor walked.
 */
export class EventTemplate {
  #bytes: Uint8Array = NOTHING;
  /** Bytes before the text, its opening quote with them, and after it, from its closing quote on. */
  #before = 0;
  #after = 0;
  /** How often it was learned since it last fitted. */
  #misses = 0;

  /** Takes the event `bytes[start..end)`, whose text is `bytes[textStart..textEnd)` and not empty. */
  learn(bytes: Buffer, start: number, end: number, textStart: number, textEnd: number): void {
    const [before, after] = [textStart - start, end - textEnd];
    this.#before = 0;
    // Some streams number their events: what never fits is not learned for ever.
    if (before + after > TEMPLATE_MAX || this.#misses >= MISSES_MAX) return;
    this.#misses += 1;
    if (this.#bytes.length < before + after) this.#bytes = new Uint8Array(before + after + ROOM);
    this.#bytes.set(bytes.subarray(start, textStart));
    this.#bytes.set(bytes.subarray(textEnd, end), before);
    this.#before = before;
    this.#after = after;
  }

  /** The end of an event that begins at `start` and differs in its text alone; -1 where there is none, or not all of it. */
  endOf(bytes: Buffer, start: number): number {
    const before = this.#before;
    const length = bytes.length;
    if (before === 0 || length - start <= before + this.#after) return -1;
    const template = this.#bytes;
    if (bytes[start + before - 1] !== QUOTE || bytes.compare(template, 0, before, start, start + before) !== 0)
      return -1;
    let at = start + before;
    for (; at < length; at++) {
      const byte = bytes[at]!;
      if (byte === QUOTE) break;
      if (byte === BACKSLASH) at += 1;
      // No JSON, and maybe the end of a line.
      else if (byte < SPACE) return -1;
    }
    const end = at + this.#after;
    if (at === start + before || end > length) return -1;
    if (bytes.compare(template, before, before + this.#after, at, end) !== 0) return -1;
    this.#misses = 0;
    return end;
  }
}

const NOTHING = new Uint8Array(0);
/** Events with more around their text are walked: they are few. */
const TEMPLATE_MAX = 2048;
/** Ids and counters grow by a digit now and then. */
const ROOM = 16;
const MISSES_MAX = 8;
const BACKSLASH = 0x5c;

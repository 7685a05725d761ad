/**
 * The events of most streams differ in one text and nothing else. This holds an event without that text: another event with
 * the same bytes around a text of its own says the same, and need not be walked.
 */
export class EventTemplate {
  #bytes: Buffer = NOTHING;
  /** Bytes before the text, its opening quote with them, and after it, from its closing quote on. */
  #before = 0;
  #after = 0;

  /** Takes the event `bytes[start..end)`, whose text is `bytes[textStart..textEnd)` and not empty. */
  learn(bytes: Buffer, start: number, end: number, textStart: number, textEnd: number): void {
    const [before, after] = [textStart - start, end - textEnd];
    this.#before = 0;
    if (before + after > TEMPLATE_MAX) return;
    if (this.#bytes.length < before + after) this.#bytes = new Uint8Array(before + after + ROOM);
    this.#bytes.set(bytes.subarray(start, textStart));
    this.#bytes.set(bytes.subarray(textEnd, end), before);
    this.#before = before;
    this.#after = after;
  }

  /** Whether an event differs in its text alone, and has one. */
  fits(bytes: Buffer, start: number, end: number): boolean {
    const template = this.#bytes;
    const before = this.#before;
    const textStart = start + before;
    const textEnd = end - this.#after;
    if (before === 0 || textEnd <= textStart) return false;
    for (let at = 0; at < before; at++) if (bytes[start + at] !== template[at]) return false;
    for (let at = 0; at < this.#after; at++) if (bytes[textEnd + at] !== template[before + at]) return false;
    for (let at = textStart; at < textEnd; at++) {
      const byte = bytes[at]!;
      if (byte === QUOTE) return false;
      // The text must not end in the middle of an escape: then the quote after it would be part of it.
      if (byte === BACKSLASH && ++at === textEnd) return false;
    }
    return true;
  }
}

const NOTHING = new Uint8Array(0);
/** Events with more around their text are walked: they are few. */
const TEMPLATE_MAX = 2048;
/** Ids and counters grow by a digit now and then. */
const ROOM = 16;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

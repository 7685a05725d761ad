/** Where an event reader puts what it finds. */
export interface EventSink {
  /**
   * The next piece of the present event's data, `bytes[start..end)`. The bytes are the reader's for this call only. Lines
   * are joined by pieces of one line feed.
   */
  data(bytes: Buffer, start: number, end: number): void;
  /** The event is whole. `name` is empty where it has none. */
  event(name: string): void;
}

/**
 * Frames a server-sent event stream (WHATWG HTML §9.2) as bytes: lines that end in LF, CR or CRLF, a byte order mark,
 * comments, fields with and without a space, all of it cut anywhere. Nothing is decoded and nothing but an event's name is
 * kept, so the memory is the same for an event of 12 MB as for one of twelve bytes. `id`, `retry` and unknown fields are
 * passed over.
 */
export class EventReader {
  readonly #sink: EventSink;
  /** How much of the byte order mark was found; past its end, the stream has begun. */
  #mark = 0;
  #part: number = PART.field;
  /** Bytes of the field's name so far, and which of the known ones it may still be. */
  #fieldLength = 0;
  #mayBe: number = KIND.data | KIND.event;
  #kind: number = KIND.other;
  #name = "";
  #dataLines = 0;
  /** The last byte was a CR that ended a line: an LF now belongs to it. */
  #afterCr = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    const end = chunk.length;
    let at = this.#mark < MARK.length ? this.#skipMark(chunk) : 0;
    // The place of the next CR, found anew only when it is passed: most streams have none.
    let cr = -1;
    while (at < end) {
      const byte = chunk[at]!;
      if (this.#afterCr) {
        this.#afterCr = false;
        if (byte === LF) {
          at += 1;
          continue;
        }
      }
      if (this.#part === PART.field) {
        at += 1;
        if (byte === COLON) this.#beginValue();
        else if (byte === LF || byte === CR) this.#endField(byte);
        else this.#fieldByte(byte);
        continue;
      }
      if (this.#part === PART.space) {
        this.#part = PART.value;
        if (byte === SPACE) {
          at += 1;
          continue;
        }
      }
      if (cr < at) cr = placeOf(chunk, CR, at);
      const lineEnd = Math.min(placeOf(chunk, LF, at), cr);
      this.#value(chunk, at, lineEnd);
      at = lineEnd;
      if (at < end) {
        this.#endLine(chunk[at]!);
        at += 1;
      }
    }
  }

  /** The stream is over. An event whose empty line is missing is told all the same: many servers leave out the last one. */
  end(): void {
    const isEvent = this.#dataLines > 0;
    this.#dataLines = 0;
    if (isEvent) this.#sink.event(this.#takeName());
  }

  /** Whether nothing of a further event was seen, so that one may be written here. */
  get betweenEvents(): boolean {
    return this.#part === PART.field && this.#fieldLength === 0 && this.#dataLines === 0 && this.#name === "";
  }

  /** @returns where the stream goes on in this chunk */
  #skipMark(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && this.#mark < MARK.length && chunk[at] === MARK[this.#mark]) {
      at += 1;
      this.#mark += 1;
    }
    if (at === chunk.length && this.#mark < MARK.length) return at;
    // A piece of a mark that was none is the beginning of a field that nobody knows.
    if (this.#mark < MARK.length) for (const byte of MARK.subarray(0, this.#mark)) this.#fieldByte(byte);
    this.#mark = MARK.length;
    return at;
  }

  #beginValue(): void {
    this.#part = PART.space;
    this.#kind = this.#kindOfField();
    if (this.#kind === KIND.data) {
      if (this.#dataLines > 0) this.#sink.data(JOINT, 0, 1);
      this.#dataLines += 1;
    } else if (this.#kind === KIND.event) {
      this.#name = "";
    }
  }

  /** A line without a colon: a field without a value, or the empty line that ends an event. */
  #endField(byte: number): void {
    if (this.#fieldLength > 0) {
      this.#beginValue();
      this.#endLine(byte);
      return;
    }
    this.#afterCr = byte === CR;
    const isEvent = this.#dataLines > 0;
    const name = this.#takeName();
    this.#dataLines = 0;
    if (isEvent) this.#sink.event(name);
  }

  #takeName(): string {
    const name = this.#name;
    this.#name = "";
    return name;
  }

  #endLine(byte: number): void {
    this.#afterCr = byte === CR;
    this.#part = PART.field;
    this.#fieldLength = 0;
    this.#mayBe = KIND.data | KIND.event;
  }

  #value(chunk: Buffer, start: number, end: number): void {
    if (this.#kind === KIND.data) {
      if (end > start) this.#sink.data(chunk, start, end);
    } else if (this.#kind === KIND.event) {
      this.#name += chunk.toString("latin1", start, Math.min(end, start + NAME_MAX - this.#name.length));
    }
  }

  #fieldByte(byte: number): void {
    if (byte !== DATA_NAME[this.#fieldLength]) this.#mayBe &= ~KIND.data;
    if (byte !== EVENT_NAME[this.#fieldLength]) this.#mayBe &= ~KIND.event;
    this.#fieldLength += 1;
  }

  #kindOfField(): number {
    if (this.#mayBe === KIND.data && this.#fieldLength === DATA_NAME.length) return KIND.data;
    return this.#mayBe === KIND.event && this.#fieldLength === EVENT_NAME.length ? KIND.event : KIND.other;
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const MARK: Uint8Array = Uint8Array.of(0xef, 0xbb, 0xbf);
const JOINT: Buffer = Buffer.from("\n");

/** What a line is at: its field's name, the space that may follow the colon, its value. */
const PART = { field: 0, space: 1, value: 2 } as const;
const KIND = { other: 0, data: 1, event: 2 } as const;

const DATA_NAME: Uint8Array = Buffer.from("data");
const EVENT_NAME: Uint8Array = Buffer.from("event");
/** Names of events that engines send are shorter; a longer one is cut. */
const NAME_MAX = 64;

/** The place of a byte at or after `from`; the end of the bytes where there is none. */
function placeOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

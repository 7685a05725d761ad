/** Where an event reader puts what it finds. */
export interface EventSink {
  /**
   * The next piece of the present event's data, `bytes[start..end)`. The bytes are the reader's for this call only. Lines
   * are joined by pieces of one line feed.
   */
  data(bytes: Uint8Array, start: number, end: number): void;
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
  readonly #field = Buffer.alloc(FIELD_MAX);
  #fieldLength = 0;
  #kind: number = KIND.other;
  readonly #name = Buffer.alloc(NAME_MAX);
  #nameLength = 0;
  #dataLines = 0;
  /** The last byte was a CR that ended a line: an LF now belongs to it. */
  #afterCr = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  push(chunk: Uint8Array): void {
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
        else if (this.#fieldLength < FIELD_MAX) this.#field[this.#fieldLength++] = byte;
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
    return this.#part === PART.field && this.#fieldLength === 0 && this.#dataLines === 0 && this.#nameLength === 0;
  }

  /** @returns where the stream goes on in this chunk */
  #skipMark(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && this.#mark < MARK.length && chunk[at] === MARK[this.#mark]) {
      at += 1;
      this.#mark += 1;
    }
    if (at === chunk.length && this.#mark < MARK.length) return at;
    // A piece of a mark that was none is the beginning of a field that nobody knows.
    if (this.#mark < MARK.length) this.#fieldLength = Math.min(this.#mark, FIELD_MAX);
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
      this.#nameLength = 0;
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
    if (this.#nameLength === 0) return "";
    const name = this.#name.toString("latin1", 0, this.#nameLength);
    this.#nameLength = 0;
    return name;
  }

  #endLine(byte: number): void {
    this.#afterCr = byte === CR;
    this.#part = PART.field;
    this.#fieldLength = 0;
  }

  #value(chunk: Uint8Array, start: number, end: number): void {
    if (this.#kind === KIND.data) {
      if (end > start) this.#sink.data(chunk, start, end);
    } else if (this.#kind === KIND.event) {
      for (let at = start; at < end && this.#nameLength < NAME_MAX; at++) this.#name[this.#nameLength++] = chunk[at]!;
    }
  }

  #kindOfField(): number {
    const field = this.#field;
    if (this.#fieldLength === 4 && field[0] === 0x64 && field[1] === 0x61 && field[2] === 0x74 && field[3] === 0x61)
      return KIND.data;
    return this.#fieldLength === 5 && field.toString("latin1", 0, 5) === "event" ? KIND.event : KIND.other;
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const MARK: Uint8Array = Uint8Array.of(0xef, 0xbb, 0xbf);
const JOINT: Uint8Array = Uint8Array.of(LF);

/** What a line is at: its field's name, the space that may follow the colon, its value. */
const PART = { field: 0, space: 1, value: 2 } as const;
const KIND = { other: 0, data: 1, event: 2 } as const;

/** One more than the longest name that means something: a longer one is cut and matches none. */
const FIELD_MAX = 6;
/** Names of events that engines send are shorter; a longer one is cut. */
const NAME_MAX = 64;

/** The place of a byte at or after `from`; the end of the bytes where there is none. */
function placeOf(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

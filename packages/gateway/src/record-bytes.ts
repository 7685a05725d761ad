const TEXT_MAX = 255;
/** Stands for null in a number that can't be negative. */
const NONE_U32 = 0xffff_ffff;

/** Writes fields one behind the other into memory that is there; the reader must read the same ones in the same order. */
export class RecordWriter {
  readonly #buffer: Buffer;
  readonly #view: DataView;
  /** Where the next field goes. */
  at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
    this.#view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  }

  byte(value: number): void {
    this.#buffer[this.at] = value;
    this.at += 1;
  }

  /** A whole number below 2³² − 1, or null. */
  count(value: number | null): void {
    this.#view.setUint32(this.at, value === null ? NONE_U32 : Math.min(value, NONE_U32 - 1));
    this.at += 4;
  }

  /** Seven digits, or null. */
  ms(value: number | null): void {
    this.#view.setFloat32(this.at, value ?? Number.NaN);
    this.at += 4;
  }

  number(value: number | null): void {
    this.#view.setFloat64(this.at, value ?? Number.NaN);
    this.at += 8;
  }

  /** The first 255 bytes of it; an empty text is read as null. */
  text(value: string | null): void {
    const length = value === null ? 0 : writeText(this.#buffer, value, this.at + 1);
    this.#buffer[this.at] = length;
    this.at += 1 + length;
  }
}

/** Short plain texts are written faster letter by letter than by a call that has to look at them first. */
function writeText(buffer: Buffer, text: string, at: number): number {
  if (text.length > TEXT_MAX) return buffer.write(text, at, TEXT_MAX, "utf8");
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return buffer.write(text, at, TEXT_MAX, "utf8");
    buffer[at + i] = code;
  }
  return text.length;
}

/** Reads what a `RecordWriter` wrote. */
export class RecordReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  byte(): number {
    return this.#buffer[this.#at++]!;
  }

  count(): number | null {
    const value = this.#buffer.readUInt32BE(this.#at);
    this.#at += 4;
    return value === NONE_U32 ? null : value;
  }

  ms(): number | null {
    const value = this.#buffer.readFloatBE(this.#at);
    this.#at += 4;
    return Number.isNaN(value) ? null : Math.round(value * 100) / 100;
  }

  number(): number | null {
    const value = this.#buffer.readDoubleBE(this.#at);
    this.#at += 8;
    return Number.isNaN(value) ? null : value;
  }

  text(): string | null {
    const length = this.byte();
    const text = this.#buffer.toString("utf8", this.#at, this.#at + length);
    this.#at += length;
    return length === 0 ? null : text;
  }
}

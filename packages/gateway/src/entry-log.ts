export interface EntryLogOptions {
  /** Entries kept at most. */
  readonly entries: number;
  /** Bytes that the entries share. */
  readonly bytes: number;
  /** Longest entry. */
  readonly entryBytes: number;
}

/**
 * The last entries of a stream of them, in memory of a fixed size that is taken once: a ring of bytes, entries of any length
 * one behind the other, the oldest overwritten first. Entries may have a tag (a hash) and are found by it again.
 */
export class EntryLog {
  /** Where entries are written, between `open` and `close`. */
  readonly buffer: Buffer;
  readonly #options: EntryLogOptions;
  /** By sequence number modulo `entries`: place and length of an entry, and the entry before it in its tag's chain. */
  readonly #places: Uint32Array;
  readonly #lengths: Uint32Array;
  readonly #before: Float64Array;
  /** By tag: the youngest entry of a chain. Numbers only rise, so a chain ends where it leaves what is kept. */
  readonly #chains: Float64Array;
  #at = 0;
  #next = 1;
  #oldest = 1;

  constructor(options: EntryLogOptions) {
    const { entries, bytes } = options;
    this.#options = options;
    // Zeroed memory costs nothing before it is written to.
    this.buffer = Buffer.from(new ArrayBuffer(bytes));
    this.#places = new Uint32Array(entries);
    this.#lengths = new Uint32Array(entries);
    this.#before = new Float64Array(entries);
    this.#chains = new Float64Array(2 ** Math.ceil(Math.log2(entries + 1)));
  }

  /** Makes room for one entry. @returns where it may be written: `entryBytes` from there */
  open(): number {
    const { bytes, entryBytes } = this.#options;
    if (this.#at + entryBytes > bytes) {
      this.#drop(this.#at, bytes);
      this.#at = 0;
    }
    this.#drop(this.#at, this.#at + entryBytes);
    return this.#at;
  }

  /** The entry that was opened is written. @param tag null = it is found by its number alone. @returns its number */
  close(length: number, tag: number | null): number {
    const { entries } = this.#options;
    const number = this.#next++;
    if (number - this.#oldest >= entries) this.#oldest = number - entries + 1;
    const row = number % entries;
    this.#places[row] = this.#at;
    this.#lengths[row] = length;
    if (tag !== null) {
      const chain = tag & (this.#chains.length - 1);
      this.#before[row] = this.#chains[chain]!;
      this.#chains[chain] = number;
    }
    this.#at += length;
    return number;
  }

  /** An entry's bytes; null once it is overwritten. They hold until the next `open`. */
  entry(number: number): Buffer | null {
    if (number < this.#oldest || number >= this.#next) return null;
    const row = number % this.#options.entries;
    const place = this.#places[row]!;
    return this.buffer.subarray(place, place + this.#lengths[row]!);
  }

  /** The youngest entry with that tag which `isIt`; null where none is kept. */
  find(tag: number, isIt: (entry: Buffer) => boolean): Buffer | null {
    let number = this.#chains[tag & (this.#chains.length - 1)]!;
    for (;;) {
      const entry = this.entry(number);
      if (entry === null || isIt(entry)) return entry;
      number = this.#before[number % this.#options.entries]!;
    }
  }

  /** How many entries younger than that one there are. */
  ageOf(number: number): number {
    return this.#next - 1 - number;
  }

  /** Entries kept. */
  get count(): number {
    return this.#next - this.#oldest;
  }

  /** All memory, used or not. */
  get bytes(): number {
    const parts = [this.buffer, this.#places, this.#lengths, this.#before, this.#chains];
    return parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Forgets the oldest entries as long as they lie in that part of the buffer. */
  #drop(start: number, end: number): void {
    while (this.#oldest < this.#next) {
      const place = this.#places[this.#oldest % this.#options.entries]!;
      if (place < start || place >= end) return;
      this.#oldest += 1;
    }
  }
}

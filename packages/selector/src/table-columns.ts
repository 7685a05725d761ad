/**
 * A routing table as four typed arrays over shared memory, which native code copies once at load. Places in `words` are absolute unless said
 * otherwise. `native/crates/core/src/table.rs` has the same numbers.
 *
 *     words    header (`HEADER`), then rows: cells, candidates, classes, models, names, in any order
 *     numbers  two per candidate: weight, part
 *     ring     slot owners of all cells, each an index into its cell's candidates
 *     names    UTF-8 of the models' names and aliases, as JSON writes them
 */
export interface Columns {
  readonly words: Uint32Array;
  readonly numbers: Float64Array;
  readonly ring: Uint16Array;
  readonly names: Uint8Array;
}

export const HEADER = {
  models: 0,
  /** Place of the first model row; they follow each other. */
  modelAt: 1,
  classes: 2,
  /** Place of the first class row; they follow each other. */
  classAt: 3,
  /** The models' own names, in their order, then the aliases. */
  names: 4,
  /** Place of the first name row; they follow each other. */
  nameAt: 5,
  cells: 6,
} as const;
export const HEADER_WORDS = 7;

export const MODEL = {
  /** Place and count of the indices of its classes, in file order. */
  classListAt: 0,
  classListCount: 1,
} as const;
export const MODEL_WORDS = 2;

export const NAME = {
  /** Span in `names`. */
  start: 0,
  end: 1,
  /** Index of the model that it names. */
  model: 2,
} as const;
export const NAME_WORDS = 3;

export const CLASS = {
  model: 0,
  /** Bits of `NEED` and `USE` that a request must all use to be of this class. */
  uses: 1,
  /** Place and count of the residencies that it allows, each 1 + index; none = any. */
  residencyAt: 2,
  residencyCount: 3,
  /** Place of its cell row; `NO_CELL` where no engine may serve it. */
  cell: 4,
} as const;
export const CLASS_WORDS = 5;
export const NO_CELL = 0;

export const CELL = {
  /** Index in the snapshot's `cells`. */
  index: 0,
  inFlightRow: 1,
  /** First slot in `ring`, and how many: a power of two, or 0 for a cell without a ring. */
  ringAt: 2,
  slots: 3,
  /** Place of its first candidate row: first those that the ring's owners count in, then the reserves. */
  candidateAt: 4,
  /** Place of the first candidate's pair in `numbers`. */
  numberAt: 5,
  engines: 6,
  reserves: 7,
  /** Which of the table's cells it is: for what a router keeps about each. */
  place: 8,
} as const;
export const CELL_WORDS = 9;

export const CANDIDATE = {
  /** State slot. */
  slot: 0,
  /** XXH32 of the engine's id. */
  idHash: 1,
  /** Bits of `NEED` that it can't take. */
  lacks: 2,
  /** `NO_LIMIT` where not known. */
  maxContextTokens: 3,
  /** 1 + index; 0 = none. */
  residency: 4,
} as const;
export const CANDIDATE_WORDS = 5;
export const NO_LIMIT = 0xffff_ffff;

export const NUMBER = {
  /** Rendezvous weight: slots owned; without a ring the weight asked; of a reserve its spare capacity. 0 = takes nothing. */
  weight: 0,
  /** Weight × expected time: its part of the cell's streams, not normalised. Of a reserve its weight. */
  part: 1,
} as const;
export const CANDIDATE_NUMBERS = 2;

export interface CandidateRow {
  readonly slot: number;
  readonly idHash: number;
  readonly lacks: number;
  readonly maxContextTokens: number;
  readonly residency: number;
  readonly weight: number;
  readonly part: number;
}

export interface CellRow {
  readonly index: number;
  readonly inFlightRow: number;
  readonly owners: Uint16Array;
  readonly candidates: readonly CandidateRow[];
  readonly reserves: readonly CandidateRow[];
}

export interface ClassRow {
  readonly model: number;
  readonly uses: number;
  readonly residencies: readonly number[];
  readonly cell: number;
}

export interface NameRow {
  readonly name: Uint8Array;
  readonly model: number;
}

/** Appends rows to the columns. */
export class ColumnWriter {
  readonly #words: number[] = new Array(HEADER_WORDS).fill(0);
  readonly #numbers: number[] = [];
  readonly #rings: Uint16Array[] = [];
  #ringLength = 0;
  readonly #names: number[] = [];

  /** @returns the place of the cell's row */
  cell({ index, inFlightRow, owners, candidates, reserves }: CellRow): number {
    const candidateAt = this.#words.length;
    const numberAt = this.#numbers.length;
    for (const { slot, idHash, lacks, maxContextTokens, residency, weight, part } of [...candidates, ...reserves]) {
      this.#words.push(slot, idHash, lacks, maxContextTokens, residency);
      this.#numbers.push(weight, part);
    }
    const at = this.#words.length;
    const ringAt = this.#ringLength;
    this.#rings.push(owners);
    this.#ringLength += owners.length;
    this.#words.push(
      index,
      inFlightRow,
      ringAt,
      owners.length,
      candidateAt,
      numberAt,
      candidates.length,
      reserves.length,
      this.#words[HEADER.cells]!++,
    );
    return at;
  }

  classes(rows: readonly ClassRow[]): void {
    const lists = rows.map(({ residencies }) => this.#list(residencies));
    this.#words[HEADER.classes] = rows.length;
    this.#words[HEADER.classAt] = this.#words.length;
    for (const [i, { model, uses, residencies, cell }] of rows.entries())
      this.#words.push(model, uses, lists[i]!, residencies.length, cell);
  }

  /** @param rows the indices of each model's classes */
  models(rows: readonly (readonly number[])[]): void {
    const lists = rows.map((classes) => this.#list(classes));
    this.#words[HEADER.models] = rows.length;
    this.#words[HEADER.modelAt] = this.#words.length;
    for (const [i, classes] of rows.entries()) this.#words.push(lists[i]!, classes.length);
  }

  /** @param rows the models' own names, in their order, then aliases */
  names(rows: readonly NameRow[]): void {
    this.#words[HEADER.names] = rows.length;
    this.#words[HEADER.nameAt] = this.#words.length;
    for (const { name, model } of rows) {
      const start = this.#names.length;
      for (const byte of name) this.#names.push(byte);
      this.#words.push(start, this.#names.length, model);
    }
  }

  finish(): Columns {
    const ring = new Uint16Array(new SharedArrayBuffer(this.#ringLength * Uint16Array.BYTES_PER_ELEMENT));
    let at = 0;
    for (const owners of this.#rings) {
      ring.set(owners, at);
      at += owners.length;
    }
    return {
      words: shared(Uint32Array, this.#words),
      numbers: shared(Float64Array, this.#numbers),
      ring,
      names: shared(Uint8Array, this.#names),
    };
  }

  #list(values: readonly number[]): number {
    const at = this.#words.length;
    this.#words.push(...values);
    return at;
  }
}

/** Where other threads can read it without a copy. */
function shared<T extends Uint32Array | Float64Array | Uint8Array>(
  kind: { new (buffer: SharedArrayBuffer): T; readonly BYTES_PER_ELEMENT: number },
  values: readonly number[],
): T {
  const array = new kind(new SharedArrayBuffer(values.length * kind.BYTES_PER_ELEMENT));
  array.set(values);
  return array;
}

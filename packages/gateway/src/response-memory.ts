import { xxh32 } from "@guidevane/selector";

/** An answer of the Responses API is looked for so long after it was last named. */
const KEPT_S = 24 * 3600;
const WAYS = 8;
/** Two halves of the id's hash, the engine's, seconds. */
const ENTRY_WORDS = 4;
const MASKS = { second: 0x9e37_79b9, engine: 0x85eb_ca6b } as const;

/** An id as a tenant's. */
export interface ResponseKey {
  readonly first: number;
  readonly second: number;
}

/** @param tenant the tenant's hash; 0 = none. One id of two tenants is two */
export function responseKey(id: Uint8Array, start: number, end: number, tenant: number): ResponseKey {
  const seed = (tenant ^ MASKS.second) >>> 0;
  // 0 marks an entry that is not in use.
  return { first: xxh32(id, start, end, tenant) || 1, second: xxh32(id, start, end, seed) };
}

/**
 * Which engine gave which answer of the Responses API: the next turn names it (`previous_response_id`), and only that
 * engine has it. A table of fixed size in memory that all threads of the process share: sets of eight entries, in which a
 * new one takes the place of the one unused for longest.
 *
 * Entries are written without locks. The engine's hash is mixed into the second half of the id's, so an entry that two
 * threads write at once, half and half, matches no id and is as good as none.
 */
export class ResponseMemory {
  readonly #words: Uint32Array;
  readonly #sets: number;

  /** @param memory from `createResponseMemory` */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Uint32Array(memory);
    this.#sets = this.#words.length / (WAYS * ENTRY_WORDS);
  }

  /** @param engine `engineHash` of its id; 0 can't be kept. @param nowS seconds of a clock that all threads share */
  remember({ first, second }: ResponseKey, engine: number, nowS: number): void {
    const words = this.#words;
    const set = this.#setOf(first);
    let at = set;
    let oldestS = Number.POSITIVE_INFINITY;
    for (let entry = set; entry < set + WAYS * ENTRY_WORDS; entry += ENTRY_WORDS) {
      const tag = Atomics.load(words, entry);
      const isSame = tag === first && this.#engineIn(entry, second) !== 0;
      const usedS = isSame ? Number.NEGATIVE_INFINITY : tag === 0 ? -1 : Atomics.load(words, entry + 3);
      if (usedS < oldestS) {
        oldestS = usedS;
        at = entry;
      }
    }
    Atomics.store(words, at, 0);
    Atomics.store(words, at + 1, mixed(second, engine));
    Atomics.store(words, at + 2, engine);
    Atomics.store(words, at + 3, nowS);
    Atomics.store(words, at, first);
  }

  /** `engineHash` of the engine that has it; 0 = not known, or not named for a day. */
  find({ first, second }: ResponseKey, nowS: number): number {
    const words = this.#words;
    const set = this.#setOf(first);
    for (let entry = set; entry < set + WAYS * ENTRY_WORDS; entry += ENTRY_WORDS) {
      if (Atomics.load(words, entry) !== first) continue;
      const engine = this.#engineIn(entry, second);
      if (engine === 0) continue;
      if (nowS - Atomics.load(words, entry + 3) > KEPT_S) return 0;
      Atomics.store(words, entry + 3, nowS);
      return engine;
    }
    return 0;
  }

  /** The engine of an entry if it is of this id. */
  #engineIn(entry: number, second: number): number {
    const engine = Atomics.load(this.#words, entry + 2);
    return Atomics.load(this.#words, entry + 1) === mixed(second, engine) ? engine : 0;
  }

  #setOf(first: number): number {
    return (first % this.#sets) * WAYS * ENTRY_WORDS;
  }
}

/** @param entries rounded up to whole sets; 16 bytes each */
export function createResponseMemory(entries: number = 65_536): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.ceil(entries / WAYS) * WAYS * ENTRY_WORDS * Uint32Array.BYTES_PER_ELEMENT);
}

/** An engine as the memory keeps it; never 0. */
export function engineHash(id: string): number {
  const bytes = Buffer.from(id);
  return xxh32(bytes, 0, bytes.length, 0) || 1;
}

function mixed(second: number, engine: number): number {
  return (second ^ Math.imul(engine, MASKS.engine)) >>> 0;
}

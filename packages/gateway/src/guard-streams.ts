import type { StreamCounts } from "@guidevane/guard";

/** Rows of classes; a process with more of them counts the last ones together. */
const CLASSES = 4096;
const ENGINES = 4096;
/** All classes together; then classes, then engines by state slot. */
const CLASS_AT = 1;
const ENGINE_AT = CLASS_AT + CLASSES;
const WORDS = ENGINE_AT + ENGINES;

/** Counts of every request thread of a process: a block of words for each, written by it alone and read by all. */
export function createStreamMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * WORDS * Int32Array.BYTES_PER_ELEMENT);
}

/** A thread died: what it held is free again. */
export function clearStreams(memory: SharedArrayBuffer, thread: number): void {
  const words = new Int32Array(memory);
  for (let at = thread * WORDS; at < (thread + 1) * WORDS; at++) Atomics.store(words, at, 0);
}

/** Requests that the process has let in, by class, and attempts under way, by engine. */
export class SharedStreams implements StreamCounts {
  readonly #words: Int32Array;
  readonly threads: number;
  readonly #own: number;
  readonly #rowOf: (requestClass: string) => number;
  /** As first found: one that was counted in must be counted out of the same. */
  readonly #rows = new Map<string, number>();

  /** @param rowOf the row of a class, the same on every thread and for as long as the process lives */
  constructor(memory: SharedArrayBuffer, thread: number, rowOf: (requestClass: string) => number) {
    this.#words = new Int32Array(memory);
    this.threads = this.#words.length / WORDS;
    this.#own = thread * WORDS;
    this.#rowOf = rowOf;
  }

  add(requestClass: string, change: 1 | -1): void {
    Atomics.add(this.#words, this.#own, change);
    Atomics.add(this.#words, this.#own + this.#classAt(requestClass), change);
  }

  held(requestClass: string): number {
    return this.#sum(this.#classAt(requestClass));
  }

  all(): number {
    return this.#sum(0);
  }

  addAttempt(engineSlot: number, change: 1 | -1): void {
    if (engineSlot < ENGINES) Atomics.add(this.#words, this.#own + ENGINE_AT + engineSlot, change);
  }

  /** Attempts of the whole process under way at an engine. */
  attempts(engineSlot: number): number {
    return engineSlot < ENGINES ? this.#sum(ENGINE_AT + engineSlot) : 0;
  }

  #classAt(requestClass: string): number {
    let row = this.#rows.get(requestClass);
    if (row === undefined) {
      row = Math.min(this.#rowOf(requestClass), CLASSES - 1);
      this.#rows.set(requestClass, row);
    }
    return CLASS_AT + row;
  }

  #sum(at: number): number {
    let sum = 0;
    for (let word = at; word < this.#words.length; word += WORDS) sum += Atomics.load(this.#words, word);
    return sum;
  }
}

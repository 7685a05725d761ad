import type { SharedState } from "./shared-state.ts";
import { xxh32OfWord } from "./xxh32.ts";

/**
 * Where conversations are that the bound or a choice moved away from home: key to engine. A conversation stays where it
 * was moved to, since going back and forth loses its cache each time; it is forgotten after ten minutes without a request.
 *
 * A table of bounded size, shared by the threads without a lock. Its sets of eight entries are a cache line each; an entry
 * is two words:
 *
 *     word 0   16 bits of the key's hash, and 1 + the engine's slot; 0 = free
 *     word 1   the second in which it was last used
 *
 * Words are written by compare-and-swap, and a thread that loses a race gives up: that, a key that has the set and the 16
 * bits of another (one in 8,000 of a full table), and an entry pushed out by newer ones cost a cache miss and nothing
 * else. `native/crates/core/src/moves.rs` does the same.
 */
export class Moves {
  readonly #words: Uint32Array;
  readonly #mask: number;

  // Of the key that was looked for last.
  #set = 0;
  #tag = 0;
  #entry = NONE;

  constructor({ moves }: SharedState) {
    this.#words = moves;
    this.#mask = moves.length / SET_WORDS - 1;
  }

  /** The engine slot where a conversation is, or −1. @param cell the cell's in-flight row: its conversations are its own */
  find(hash: number, hash2: number, cell: number, nowS: number): number {
    const words = this.#words;
    this.#set = (xxh32OfWord(hash2, cell) & this.#mask) * SET_WORDS;
    this.#tag = hash & TAG_MASK;
    this.#entry = NONE;
    for (let at = this.#set; at < this.#set + SET_WORDS; at += ENTRY_WORDS) {
      const word = Atomics.load(words, at);
      if (word >>> TAG_SHIFT !== this.#tag || (word & SLOT_MASK) === 0) continue;
      this.#entry = at;
      return isIdle(Atomics.load(words, at + 1), nowS) ? NONE : (word & SLOT_MASK) - 1;
    }
    return NONE;
  }

  /** The conversation found last was sent there: it is not idle. */
  touch(nowS: number): void {
    if (Atomics.load(this.#words, this.#entry + 1) !== nowS) Atomics.store(this.#words, this.#entry + 1, nowS);
  }

  /** The conversation looked for last is at `slot` from now on. */
  remember(slot: number, nowS: number): void {
    const words = this.#words;
    const at = this.#entry === NONE ? this.#oldest(nowS) : this.#entry;
    const before = Atomics.load(words, at);
    const after = ((this.#tag << TAG_SHIFT) | (slot + 1)) >>> 0;
    if (Atomics.compareExchange(words, at, before, after) === before) Atomics.store(words, at + 1, nowS);
  }

  /** The conversation looked for last is at home again. */
  forget(): void {
    if (this.#entry === NONE) return;
    const before = Atomics.load(this.#words, this.#entry);
    if (before >>> TAG_SHIFT === this.#tag) Atomics.compareExchange(this.#words, this.#entry, before, 0);
  }

  /** The set's first entry that is free or idle, else the one used least lately. */
  #oldest(nowS: number): number {
    const words = this.#words;
    let oldest = this.#set;
    let mostS = NONE;
    for (let at = this.#set; at < this.#set + SET_WORDS; at += ENTRY_WORDS) {
      const usedS = Atomics.load(words, at + 1);
      if (Atomics.load(words, at) === 0 || isIdle(usedS, nowS)) return at;
      const ageS = Math.max((nowS - usedS) | 0, 0);
      if (ageS > mostS) {
        mostS = ageS;
        oldest = at;
      }
    }
    return oldest;
  }
}

const NONE = -1;
const ENTRY_WORDS = 2;
const SET_WORDS: number = 8 * ENTRY_WORDS;
const TAG_SHIFT = 16;
const TAG_MASK = 0xffff;
const SLOT_MASK = 0xffff;

/** As long as an engine may be thought to keep the blocks of a conversation that rests. */
const IDLE_S = 600;

/** Threads read the clock a moment apart, so a use may lie ahead. */
function isIdle(usedS: number, nowS: number): boolean {
  return ((nowS - usedS) | 0) > IDLE_S;
}

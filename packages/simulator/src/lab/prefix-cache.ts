import { IntMap } from "./int-map.ts";

/**
 * The KV memory of one replica, in blocks: those that running requests hold, and those that are kept for a later prompt
 * with the same beginning, least recently used first to go.
 *
 *     held + kept + free = blocks          at every moment
 *
 * A block is known by its id: equal ids mean equal content *and* equal content before it, as hash chains of prefix blocks
 * do, so the blocks of a prompt that are found are always its first ones.
 */
export class PrefixCache {
  readonly blocks: number;
  readonly #places = new IntMap();
  readonly #free: number[] = [];
  #id: Int32Array = new Int32Array(64);
  #holders: Int32Array = new Int32Array(64);
  #before: Int32Array = new Int32Array(64);
  #after: Int32Array = new Int32Array(64);
  #used = 0;
  #held = 0;
  /** Blocks of running requests that nobody else can use: the unfinished end of a prompt, and what they write. */
  #private = 0;

  /** @param blocks in all; infinite for an engine whose memory never fills */
  constructor(blocks: number) {
    this.blocks = blocks;
    // Place 0 is the ring that the kept blocks hang on: `after` is the least recently used.
    this.#used = 1;
  }

  get held(): number {
    return this.#held + this.#private;
  }

  get kept(): number {
    return this.#places.size - this.#held;
  }

  get free(): number {
    return this.blocks - this.#places.size - this.#private;
  }

  /** How many blocks from the first on are here. */
  find(ids: Int32Array, from: number, count: number): number {
    let found = 0;
    while (found < count && this.#places.get(ids[from + found]!) >= 0) found++;
    return found;
  }

  /** Whether `count` more blocks could be had by giving up kept ones. */
  hasRoom(count: number): boolean {
    return this.free + this.kept >= count;
  }

  /** Holds these blocks, making those that are not here; the caller has asked `hasRoom`. */
  hold(ids: Int32Array, from: number, count: number): void {
    for (let i = 0; i < count; i++) {
      const id = ids[from + i]!;
      let place = this.#places.get(id);
      if (place < 0) {
        place = this.#make(id);
      } else if (this.#holders[place] === 0) {
        this.#unhang(place);
        this.#held += 1;
      }
      this.#holders[place]! += 1;
    }
    this.#shrink();
  }

  /** Lets go of blocks held before: those that nobody else holds are kept, the last of the prompt the first to go. */
  release(ids: Int32Array, from: number, count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      const place = this.#places.get(ids[from + i]!);
      this.#holders[place]! -= 1;
      if (this.#holders[place] !== 0) continue;
      this.#held -= 1;
      this.#hang(place);
    }
  }

  /**
   * Blocks of a finished request that were its own and have an id now: kept where there is room. Before `release`, so that
   * what stands later in the conversation goes sooner.
   */
  keep(ids: Int32Array, from: number, count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      const id = ids[from + i]!;
      const place = this.#places.get(id);
      if (place >= 0) {
        if (this.#holders[place] !== 0) continue;
        this.#unhang(place);
        this.#hang(place);
      } else if (this.free >= 1 || this.#evictOne()) {
        const made = this.#make(id);
        this.#held -= 1;
        this.#hang(made);
      }
    }
  }

  /** Changes the private blocks; kept ones are given up for them. False when that was not enough. */
  addPrivate(count: number): boolean {
    this.#private += count;
    this.#shrink();
    return this.free >= 0;
  }

  /** Forgets every kept block: what nobody holds is gone. */
  giveUpKept(): void {
    while (this.#evictOne());
  }

  #shrink(): void {
    while (this.free < 0 && this.#evictOne());
  }

  #evictOne(): boolean {
    const oldest = this.#after[0]!;
    if (oldest === 0) return false;
    this.#unhang(oldest);
    this.#places.delete(this.#id[oldest]!);
    this.#free.push(oldest);
    return true;
  }

  /** A held block without holders yet. */
  #make(id: number): number {
    const place = this.#free.pop() ?? this.#used++;
    if (place >= this.#id.length) this.#grow();
    this.#id[place] = id;
    this.#holders[place] = 0;
    this.#places.add(id, place);
    this.#held += 1;
    return place;
  }

  #hang(place: number): void {
    const newest = this.#before[0]!;
    this.#before[place] = newest;
    this.#after[place] = 0;
    this.#after[newest] = place;
    this.#before[0] = place;
  }

  #unhang(place: number): void {
    const before = this.#before[place]!;
    const after = this.#after[place]!;
    this.#after[before] = after;
    this.#before[after] = before;
  }

  #grow(): void {
    const double = (column: Int32Array): Int32Array => {
      const next = new Int32Array(column.length * 2);
      next.set(column);
      return next;
    };
    this.#id = double(this.#id);
    this.#holders = double(this.#holders);
    this.#before = double(this.#before);
    this.#after = double(this.#after);
  }
}

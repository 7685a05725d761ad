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

  /** How many blocks from the first on are here. @param places where they are; written, as far as they are here */
  find(ids: Int32Array, from: number, count: number, places?: Int32Array): number {
    for (let found = 0; found < count; found++) {
      const place = this.#places.get(ids[from + found]!);
      if (place < 0) return found;
      if (places !== undefined) places[found] = place;
    }
    return count;
  }

  /** Whether `count` more blocks could be had by giving up kept ones. */
  hasRoom(count: number): boolean {
    return this.free + this.kept >= count;
  }

  /**
   * Holds these blocks, making those that are not here; the caller has asked `hasRoom`.
   *
   * @param places where they are: of the first `found` by `find`, just before; the others are written. Those of a held block
   *   stand until it is released
   */
  hold(ids: Int32Array, from: number, count: number, places: Int32Array, found: number): void {
    for (let i = 0; i < count; i++) {
      const id = ids[from + i]!;
      let place = i < found ? places[i]! : this.#places.get(id);
      if (place < 0) {
        place = this.#make(id);
      } else if (this.#holders[place] === 0) {
        this.#unhang(place);
        this.#held += 1;
      }
      this.#holders[place]! += 1;
      places[i] = place;
    }
    this.#shrink();
  }

  /** Lets go of blocks held before: those that nobody else holds are kept, the last of the prompt the first to go. */
  release(places: Int32Array, count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      const place = places[i]!;
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

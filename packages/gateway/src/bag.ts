/** What can be in one bag. */
export interface InBag {
  /** Where it is; the bag's own to write. −1 = in none. */
  place: number;
}

/**
 * Things that come and go with every request, in no order. A `Set` would do, but for the garbage collector: it moves to
 * another table every so often, and each table it leaves points at the next one. Once one of them has grown old, everything
 * that was in any of them since stays in memory until the next full collection.
 */
export class Bag<T extends InBag> {
  readonly #all: T[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(one: T): void {
    one.place = this.#all.push(one) - 1;
  }

  /** Takes it out, where it is in. */
  delete(one: T): void {
    const { place } = one;
    if (this.#all[place] !== one) return;
    const last = this.#all.pop()!;
    if (last !== one) {
      this.#all[place] = last;
      last.place = place;
    }
    one.place = -1;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all.values();
  }
}

/**
 * Events in order of time, those of one instant in the order they were put in, so that equal seeds give equal runs. A
 * binary heap over typed arrays: nothing is allocated once it has grown.
 */
export class EventHeap {
  #time: Float64Array;
  #order: Float64Array;
  /** By place in the heap: row of the event's other columns. Places after the last event have the rows that are free. */
  #row: Int32Array;
  #kind: Int32Array;
  #subject: Int32Array;
  #mark: Int32Array;
  #size = 0;
  #puts = 0;

  constructor(capacity = 1024) {
    this.#time = new Float64Array(capacity);
    this.#order = new Float64Array(capacity);
    this.#row = Int32Array.from({ length: capacity }, (_, row) => row);
    this.#kind = new Int32Array(capacity);
    this.#subject = new Int32Array(capacity);
    this.#mark = new Int32Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  /** Time of the first event, ms; infinite when there is none. */
  get nextMs(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#time[0]!;
  }

  /** Of the first event. */
  get kind(): number {
    return this.#kind[this.#row[0]!]!;
  }

  get subject(): number {
    return this.#subject[this.#row[0]!]!;
  }

  get mark(): number {
    return this.#mark[this.#row[0]!]!;
  }

  /** @param mark whatever tells its receiver whether the event still holds */
  put(atMs: number, kind: number, subject: number, mark: number): void {
    if (this.#size === this.#time.length) this.#grow();
    const order = this.#puts++;
    let at = this.#size++;
    const row = this.#row[at]!;
    this.#kind[row] = kind;
    this.#subject[row] = subject;
    this.#mark[row] = mark;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      // A later put never goes before an earlier one of the same instant.
      if (this.#time[parent]! <= atMs) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#set(at, atMs, order, row);
  }

  /** Drops the first event. */
  drop(): void {
    const last = --this.#size;
    if (last <= 0) return;
    const atMs = this.#time[last]!;
    const order = this.#order[last]!;
    const row = this.#row[last]!;
    this.#row[last] = this.#row[0]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#isBefore(child + 1, this.#time[child]!, this.#order[child]!)) child += 1;
      if (!this.#isBefore(child, atMs, order)) break;
      this.#move(child, at);
      at = child;
    }
    this.#set(at, atMs, order, row);
  }

  #isBefore(place: number, atMs: number, order: number): boolean {
    const time = this.#time[place]!;
    return time < atMs || (time === atMs && this.#order[place]! < order);
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#time[from]!, this.#order[from]!, this.#row[from]!);
  }

  #set(at: number, timeMs: number, order: number, row: number): void {
    this.#time[at] = timeMs;
    this.#order[at] = order;
    this.#row[at] = row;
  }

  #grow(): void {
    const capacity = this.#time.length * 2;
    this.#time = grown(this.#time, new Float64Array(capacity));
    this.#order = grown(this.#order, new Float64Array(capacity));
    this.#row = grown(
      this.#row,
      Int32Array.from({ length: capacity }, (_, row) => row),
    );
    this.#kind = grown(this.#kind, new Int32Array(capacity));
    this.#subject = grown(this.#subject, new Int32Array(capacity));
    this.#mark = grown(this.#mark, new Int32Array(capacity));
  }
}

function grown<A extends Float64Array | Int32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}

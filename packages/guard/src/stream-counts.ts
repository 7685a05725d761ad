/** Streams that a gateway holds, by class. Several threads may count together. */
export interface StreamCounts {
  /** One more (+1) or one less (−1). */
  add(requestClass: string, change: 1 | -1): void;
  /** Of a class, by all threads. */
  held(requestClass: string): number;
  /** Of all classes, by all threads. */
  all(): number;
}

/** The counts of a process with one thread. */
export class LocalStreams implements StreamCounts {
  readonly #held = new Map<string, number>();
  #all = 0;

  add(requestClass: string, change: 1 | -1): void {
    this.#held.set(requestClass, this.held(requestClass) + change);
    this.#all += change;
  }

  held(requestClass: string): number {
    return this.#held.get(requestClass) ?? 0;
  }

  all(): number {
    return this.#all;
  }
}

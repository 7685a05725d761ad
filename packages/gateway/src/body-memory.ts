import { availableParallelism, totalmem } from "node:os";

/** What every body may hold without being counted: refusing small ones gains no memory worth having. */
const UNCOUNTED_BYTES = 65_536;

/** Compressed bodies that are inflated at a time: as many as there are threads for it in node's pool. */
const INFLATING_MAX = 4;

/**
 * How much of the machine's memory, or of what the process may use of it, the bodies of one thread may fill. Each may be as
 * large as `limits.bodyBytes`, and a client can send many at once.
 */
export function bodyMemoryBytes(bodyBytes: number): number {
  const machine = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.max(4 * bodyBytes, machine / 4 / availableParallelism());
}

/** The bodies that one thread holds, from their first byte until their answers begin. */
export class BodyMemory {
  readonly #limitBytes: () => number;
  #heldBytes = 0;
  #inflating = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** What one request holds. */
  share(): BodyShare {
    return new BodyShare(this);
  }

  /** False where there is no room for so many more. */
  take(bytes: number): boolean {
    if (bytes > 0 && this.#heldBytes + bytes > this.#limitBytes()) return false;
    this.#heldBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  /** Runs what inflates a body, in its turn: one may grow to the limit of a body before anything is known of its size. */
  async inflate<T>(task: () => Promise<T>): Promise<T> {
    if (this.#inflating === INFLATING_MAX) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#inflating += 1;
    try {
      return await task();
    } finally {
      // The place goes on to the next in line.
      const next = this.#waiting.shift();
      if (next === undefined) this.#inflating -= 1;
      else next();
    }
  }
}

/** What one request holds of the memory for bodies. */
export class BodyShare {
  readonly #memory: BodyMemory;
  #ownBytes = 0;
  #countedBytes = 0;

  constructor(memory: BodyMemory) {
    this.#memory = memory;
  }

  /** False where there is no room for so many more; then none of them count. */
  add(bytes: number): boolean {
    const more = Math.max(this.#ownBytes + bytes - UNCOUNTED_BYTES, 0) - this.#countedBytes;
    if (!this.#memory.take(more)) return false;
    this.#ownBytes += bytes;
    this.#countedBytes += more;
    return true;
  }

  /** The request holds nothing any more. May be called again. */
  release(): void {
    this.#memory.giveBack(this.#countedBytes);
    this.#ownBytes = 0;
    this.#countedBytes = 0;
  }
}

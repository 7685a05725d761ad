/** An attempt in `RunningAttempts`. */
export interface RunningAttempt<Self> {
  /** Names it while it runs. */
  readonly number: number;
  /** The one after it in its chain; the table's own to write. */
  next: Self | null;
}

/** Chains; more attempts than that at a time only make them longer. */
const CHAINS = 4096;

/**
 * Attempts under way, found by their numbers. A hash table of its own rather than a `Map`: that moves to another table every
 * few thousand attempts, and what passed through an old one stays in memory until the next full collection.
 */
export class RunningAttempts<Attempt extends RunningAttempt<Attempt>> {
  readonly #chains: (Attempt | null)[] = new Array<Attempt | null>(CHAINS).fill(null);

  add(attempt: Attempt): void {
    const chain = attempt.number % CHAINS;
    attempt.next = this.#chains[chain] ?? null;
    this.#chains[chain] = attempt;
  }

  find(number: number): Attempt | null {
    let at: Attempt | null = this.#chains[number % CHAINS] ?? null;
    while (at !== null && at.number !== number) at = at.next;
    return at;
  }

  /** Takes it out; null where it is not in. */
  take(number: number): Attempt | null {
    const chain = number % CHAINS;
    let before: Attempt | null = null;
    let at: Attempt | null = this.#chains[chain] ?? null;
    while (at !== null && at.number !== number) {
      before = at;
      at = at.next;
    }
    if (at === null) return null;
    if (before === null) this.#chains[chain] = at.next;
    else before.next = at.next;
    at.next = null;
    return at;
  }

  /** In no order. The one at hand may be taken out. */
  *[Symbol.iterator](): Generator<Attempt> {
    for (const first of this.#chains) {
      for (let at: Attempt | null = first; at !== null; ) {
        const next: Attempt | null = at.next;
        yield at;
        at = next;
      }
    }
  }
}

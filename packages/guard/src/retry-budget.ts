/** Retries beyond this utilisation of a cell's engines would push them past what they can hold. */
const UTILISATION_MAX = 0.95;

/**
 * What one first attempt earns, b(ρ) = max(0, min(maxRatio, (0.95 − ρ)/ρ)): with b retries for each first attempt the load
 * comes to ρ·(1 + b) ≤ 0.95.
 *
 * @param utilisation ρ, by first attempts alone
 */
export function retryRatio(utilisation: number, maxRatio: number): number {
  if (!Number.isFinite(utilisation)) return 0;
  if (utilisation <= 0) return maxRatio;
  return Math.max(0, Math.min(maxRatio, (UTILISATION_MAX - utilisation) / utilisation));
}

/** A retry of a small request costs an engine a place in its batch all the same. */
const COST_LEAST = 0.5;

/** Models with a budget of their own, and cells whose first attempts are counted; those beyond share the last row. */
export const BUDGET_ROWS = 1024;
export const CELL_ROWS = 4096;

/** Words of one budget, and where the cells' counts begin. Tokens and work are in thousandths. */
export const WORD = { tokens: 0, earns: 1, most: 2, meanWork: 3, work: 4, attempts: 5 } as const;
export const BUDGET_WORDS = 6;
export const CELLS_AT: number = BUDGET_ROWS * BUDGET_WORDS;
export const SCALE = 1000;

/** Where a class's budget and the count of its first attempts are. Plain data. */
export interface RetryRows {
  readonly budget: number;
  readonly cell: number;
}

/** Memory for the budgets of a process, empty: a `RetryKeeper` fills it. */
export function createRetryMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((CELLS_AT + CELL_ROWS) * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * The retry budgets of a process, one a model, as any of its threads sees them: first attempts earn, retries take. It
 * never waits, and no token is spent twice.
 */
export class RetryBudget {
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** A first attempt begins. @param earns false for one that is a client's own retry of an earlier request */
  firstAttempt({ budget, cell }: RetryRows, work: number, earns: boolean): void {
    if (!earns) return;
    const at = budget * BUDGET_WORDS;
    Atomics.add(this.#words, CELLS_AT + cell, 1);
    Atomics.add(this.#words, at + WORD.attempts, 1);
    Atomics.add(this.#words, at + WORD.work, Math.round(work * SCALE));
    this.#add(at, Atomics.load(this.#words, at + WORD.earns));
  }

  /** Takes what a retry of so much work costs; false, and nothing taken, where that is not there. */
  take({ budget }: RetryRows, work: number): boolean {
    const at = budget * BUDGET_WORDS;
    const cost = this.#cost(at, work);
    for (;;) {
      const tokens = Atomics.load(this.#words, at + WORD.tokens);
      if (tokens < cost) return false;
      if (Atomics.compareExchange(this.#words, at + WORD.tokens, tokens, tokens - cost) === tokens) return true;
    }
  }

  /** The retry was not made after all. */
  giveBack({ budget }: RetryRows, work: number): void {
    const at = budget * BUDGET_WORDS;
    this.#add(at, this.#cost(at, work));
  }

  tokens({ budget }: RetryRows): number {
    return Atomics.load(this.#words, budget * BUDGET_WORDS + WORD.tokens) / SCALE;
  }

  /** In thousandths of a token. */
  #cost(at: number, work: number): number {
    const meanWork = Atomics.load(this.#words, at + WORD.meanWork);
    const relative = meanWork > 0 ? (work * SCALE) / meanWork : 1;
    return Math.round(Math.max(COST_LEAST, relative) * SCALE);
  }

  #add(at: number, amount: number): void {
    const most = Atomics.load(this.#words, at + WORD.most);
    for (;;) {
      const tokens = Atomics.load(this.#words, at + WORD.tokens);
      // What is above the most is cut by the keeper alone.
      const next = Math.max(tokens, Math.min(tokens + amount, most));
      if (Atomics.compareExchange(this.#words, at + WORD.tokens, tokens, next) === tokens) return;
    }
  }
}

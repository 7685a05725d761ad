interface Sums {
  tokens: number;
  squares: number;
}

/**
 * How long the prompts are that a new one has to wait for, by the prompts sent to each engine. Who comes while an engine
 * reads meets a long prompt more often than a short one, by as much as it takes longer to read: their mean is
 *
 *     E[p²] ÷ E[p]
 *
 * 12,400 tokens on average are 34,000 for those who wait (size bias; Pollaczek and Khinchine's mean wait has it too).
 */
export class PromptLengths {
  readonly #engines = new Map<string, Sums>();

  add(engine: string, promptTokens: number): void {
    let own = this.#engines.get(engine);
    if (own === undefined) {
      own = { tokens: 0, squares: 0 };
      this.#engines.set(engine, own);
    }
    own.tokens += promptTokens - own.tokens / MEMORY;
    own.squares += promptTokens ** 2 - own.squares / MEMORY;
  }

  /** Mean length of the prompt that is being read at the engine when another comes, tokens; 0 = none was sent there. */
  met(engine: string): number {
    const own = this.#engines.get(engine);
    return own === undefined || own.tokens === 0 ? 0 : own.squares / own.tokens;
  }

  /** Forgets the engines that are not among these. */
  keep(engines: Readonly<Record<string, unknown>>): void {
    for (const engine of this.#engines.keys()) if (!Object.hasOwn(engines, engine)) this.#engines.delete(engine);
  }
}

/** Prompts of an engine that count: the mean of squares needs many, for few prompts make most of it. */
const MEMORY = 500;

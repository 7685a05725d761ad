/** An attempt in `AwaitedTokens`. */
export interface AwaitedToken<Self> {
  /** Those begun before and after it; the list's own to write. */
  earlier: Self | null;
  later: Self | null;
}

/**
 * Attempts whose first token is still to come, in the order in which they began: few beside all that are under way, most of
 * which have begun their answers long ago. A list through the attempts themselves, so that it makes nothing and keeps
 * nothing.
 */
export class AwaitedTokens<Attempt extends AwaitedToken<Attempt>> {
  #first: Attempt | null = null;
  #last: Attempt | null = null;

  add(attempt: Attempt): void {
    attempt.earlier = this.#last;
    if (this.#last === null) this.#first = attempt;
    else this.#last.later = attempt;
    this.#last = attempt;
  }

  /** Takes it out; nothing where it is not in. */
  drop(attempt: Attempt): void {
    const { earlier, later } = attempt;
    if (earlier !== null) earlier.later = later;
    else if (this.#first === attempt) this.#first = later;
    else return;
    if (later !== null) later.earlier = earlier;
    else this.#last = earlier;
    attempt.earlier = null;
    attempt.later = null;
  }

  /** Oldest first. `visit` may take out the one that it is given. */
  each(visit: (attempt: Attempt) => void): void {
    for (let at = this.#first; at !== null; ) {
      const { later } = at;
      visit(at);
      at = later;
    }
  }
}

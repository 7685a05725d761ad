import type { DecisionDraft } from "./decision-draft.ts";

/** Chains; more requests than that at a time only make them longer. */
const CHAINS = 4096;

/**
 * The drafts of requests under way, found by their ids. A hash table of its own rather than a `Map`: what passes through one
 * of those stays in memory for long (see `Bag`).
 */
export class RunningDecisions {
  readonly #chains: (DecisionDraft | null)[] = new Array<DecisionDraft | null>(CHAINS).fill(null);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(draft: DecisionDraft): void {
    const chain = draft.tag & (CHAINS - 1);
    draft.next = this.#chains[chain] ?? null;
    this.#chains[chain] = draft;
    this.#size += 1;
  }

  /** Takes it out, where it is in. */
  delete(draft: DecisionDraft): void {
    const chain = draft.tag & (CHAINS - 1);
    let before: DecisionDraft | null = null;
    let at = this.#chains[chain] ?? null;
    while (at !== null && at !== draft) {
      before = at;
      at = at.next;
    }
    if (at === null) return;
    if (before === null) this.#chains[chain] = draft.next;
    else before.next = draft.next;
    draft.next = null;
    this.#size -= 1;
  }

  /** The youngest with that id, for a client may send one twice at a time. @param tag the id's hash */
  find(tag: number, id: string): DecisionDraft | null {
    let draft = this.#chains[tag & (CHAINS - 1)] ?? null;
    while (draft !== null && draft.id !== id) draft = draft.next;
    return draft;
  }
}

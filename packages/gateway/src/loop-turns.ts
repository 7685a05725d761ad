/** Lets heavy work be done once in a turn of the event loop, so that streams and small requests are served in between. */
export class LoopTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn that no other caller is given. */
  next(): Promise<void> {
    this.#last = this.#last.then(nextTurn);
    return this.#last;
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What a snapshot says of an engine is read and taken over in a few microseconds: so many stay below a millisecond. */
export const ENGINES_A_TURN = 64;

/** Does a task for each of many things, so many in a turn of the event loop; for few, all before it returns. */
export async function inTurns<Thing>(
  things: readonly Thing[],
  aTurn: number,
  task: (thing: Thing) => void,
): Promise<void> {
  for (let at = 0; at < things.length; at++) {
    if (at > 0 && at % aTurn === 0) await nextTurn();
    task(things[at]!);
  }
}

/** Does work that comes in small parts, one in each turn of the event loop; what is one part, before it returns. */
export async function partsInTurns<Result>(parts: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
    await nextTurn();
  }
}

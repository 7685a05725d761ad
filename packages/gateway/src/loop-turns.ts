/** Lets heavy work be done once in a turn of the event loop, so that streams and small requests are served in between. */
export class LoopTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn that no other caller is given. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.#last;
  }
}

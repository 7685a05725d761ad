/**
 * Time, from outside. `nowMs` is monotonic and serves ages, budgets and timers; `wallMs` is for stamps only, since a
 * wall clock may jump.
 */
export interface Clock {
  nowMs(): number;
  wallMs(): number;
  /** Runs `task` once, `delayMs` from now, unless the returned function is called before. Does not keep a process alive. */
  after(delayMs: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, task) {
    if (delayMs <= TIMER_MAX_MS) {
      const only = setTimeout(task, delayMs).unref();
      return () => clearTimeout(only);
    }
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const partMs = Math.min(leftMs, TIMER_MAX_MS);
      timer = setTimeout(() => (leftMs > partMs ? wait(leftMs - partMs) : task()), partMs);
      timer.unref();
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
};

/** Beyond it node waits one millisecond instead. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** A clock that moves only when told to: hours pass in a millisecond, and timers fire in order of their time. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #wallOffsetMs: number;
  #timers: { atMs: number; order: number; task: () => void }[] = [];
  #order = 0;

  constructor(startMs = 0, wallStartMs = 1_700_000_000_000) {
    this.#nowMs = startMs;
    this.#wallOffsetMs = wallStartMs - startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  after(delayMs: number, task: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves time on by `ms`, running each timer that falls due at its own instant. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#timers
        .filter((timer) => timer.atMs <= endMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.task();
    }
    this.#nowMs = endMs;
  }
}

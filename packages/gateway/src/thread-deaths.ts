import type { Clock } from "@guidevane/core";

/** A thread that died is replaced after this long; twice as long after each death that follows soon. */
const REPLACE_MS = 250;
const REPLACE_MAX_MS = 10_000;
/** A thread that lived so long had a good start. */
const GOOD_START_MS = 10_000;
/**
 * While no other thread lives, each second of waiting is one in which nobody listens: then only the starts are this far
 * apart. A start costs some 0.2 s of CPU, so threads that all die at once keep about one core busy, and no more.
 */
const ALONE_START_MS = 250;

interface Life {
  bornMs: number;
  lives: boolean;
  /** Deaths in a row, each soon after the start. */
  soonDeaths: number;
}

/**
 * How long after its death a request thread is replaced. One that dies again and again waits longer each time, so that a
 * fault of every start costs the others little; the last one that lived waits for nothing that it need not.
 */
export class ThreadDeaths {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #lives: Life[];

  /** All of them are born now. */
  constructor(clock: Pick<Clock, "nowMs">, threads: number) {
    this.#clock = clock;
    this.#lives = Array.from({ length: threads }, () => ({ bornMs: clock.nowMs(), lives: true, soonDeaths: 0 }));
  }

  /** Another thread takes the place of one that died. */
  born(thread: number): void {
    const life = this.#lives[thread]!;
    life.bornMs = this.#clock.nowMs();
    life.lives = true;
  }

  /** @returns ms until the thread is to be replaced; 0 = at once */
  died(thread: number): number {
    const life = this.#lives[thread]!;
    const livedMs = this.#clock.nowMs() - life.bornMs;
    life.lives = false;
    if (livedMs >= GOOD_START_MS) life.soonDeaths = 0;
    const waitMs = Math.min(REPLACE_MAX_MS, REPLACE_MS * 2 ** life.soonDeaths);
    life.soonDeaths += 1;
    const alone = this.#lives.every(({ lives }) => !lives);
    return alone ? Math.min(waitMs, Math.max(0, ALONE_START_MS - livedMs)) : waitMs;
  }
}

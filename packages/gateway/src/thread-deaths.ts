import type { Clock } from "@guidevane/core";

/** A thread that died is replaced after this long; twice as long after each death that follows soon. */
const REPLACE_MS = 250;
const REPLACE_MAX_MS = 10_000;
/**
 * While no other thread lives, each second of waiting is one in which nobody listens. Then one of them waits for less: its
 * starts are as far apart as the wait would be, and this far at most. What lets threads live again is found within seconds,
 * and the starts of that one, some 0.2 s of CPU each, keep a twentieth of a core busy.
 */
const ALONE_START_MAX_MS = 4000;
/** A thread that lived so long had a good start. */
export const GOOD_START_MS = 10_000;

interface Life {
  bornMs: number;
  lives: boolean;
  /** When another thread takes its place, if it is dead. */
  dueMs: number;
  /** Deaths in a row, each soon after the start. */
  soonDeaths: number;
  /** What it died of last. */
  why: string | null;
}

/** What is to be done about a death. */
export interface Death {
  /** Until the thread is to be replaced; 0 = at once. */
  readonly waitMs: number;
  /** It is to be told of: the wait grew, or it died of something else than the last time. */
  readonly isNews: boolean;
}

/**
 * How long after its death a request thread is replaced. One that dies again and again waits longer each time, so that a
 * fault of every start costs little; it is told of at each step up to the longest wait, and then no more.
 */
export class ThreadDeaths {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #lives: Life[];

  /** All of them are born now. */
  constructor(clock: Pick<Clock, "nowMs">, threads: number) {
    this.#clock = clock;
    const bornMs = clock.nowMs();
    this.#lives = Array.from({ length: threads }, () => ({ bornMs, lives: true, dueMs: 0, soonDeaths: 0, why: null }));
  }

  /** Another thread takes the place of one that died. */
  born(thread: number): void {
    const life = this.#lives[thread]!;
    life.bornMs = this.#clock.nowMs();
    life.lives = true;
  }

  died(thread: number, why: string): Death {
    const life = this.#lives[thread]!;
    const nowMs = this.#clock.nowMs();
    const livedMs = nowMs - life.bornMs;
    life.lives = false;
    if (livedMs >= GOOD_START_MS) life.soonDeaths = 0;
    const stepMs = stepOf(life.soonDeaths);
    const isNews = life.soonDeaths === 0 || stepMs > stepOf(life.soonDeaths - 1) || why !== life.why;
    life.soonDeaths += 1;
    life.why = why;
    const soonMs = Math.max(0, Math.min(ALONE_START_MAX_MS, stepMs) - livedMs);
    const others = this.#lives.filter((other) => other !== life);
    const isNeeded = others.every(({ lives, dueMs }) => !lives && dueMs > nowMs + soonMs);
    const waitMs = isNeeded ? soonMs : stepMs;
    life.dueMs = nowMs + waitMs;
    return { waitMs, isNews };
  }
}

/** @param soonDeaths that it had before */
function stepOf(soonDeaths: number): number {
  return Math.min(REPLACE_MAX_MS, REPLACE_MS * 2 ** soonDeaths);
}

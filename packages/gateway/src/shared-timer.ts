import type { Clock } from "@guidevane/core";
import { Bag, type InBag } from "./bag.ts";

/**
 * A clock whose timers share one of the clock behind it. A request sets several, each for seconds or minutes, and is over
 * within milliseconds: to set one of these is a note in a bag, and the shared one is set anew only where it would come too
 * late. One that comes for nothing looks for the next that is due.
 */
export class SharedTimer implements Clock {
  readonly #clock: Clock;
  readonly #waiting = new Bag<Waiting>();
  /** When the shared timer is set for. */
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #stopWake: () => void = none;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  after(delayMs: number, task: () => void): () => void {
    const nowMs = this.#clock.nowMs();
    const waiting: Waiting = { place: -1, atMs: nowMs + Math.max(0, delayMs), order: this.#count++, task };
    this.#waiting.add(waiting);
    if (waiting.atMs < this.#wakeAtMs) this.#wake(waiting.atMs, nowMs);
    return () => this.#waiting.delete(waiting);
  }

  #wake(atMs: number, nowMs: number): void {
    this.#stopWake();
    this.#wakeAtMs = atMs;
    this.#stopWake = this.#clock.after(atMs - nowMs, () => this.#onWake());
  }

  #onWake(): void {
    const nowMs = this.#clock.nowMs();
    const due: Waiting[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const each of this.#waiting) {
      if (each.atMs <= nowMs) due.push(each);
      else nextMs = Math.min(nextMs, each.atMs);
    }
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
    if (nextMs < this.#wakeAtMs) this.#wake(nextMs, nowMs);
    due.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    for (const each of due) {
      // One before it may have stopped it.
      if (each.place < 0) continue;
      this.#waiting.delete(each);
      each.task();
    }
  }
}

interface Waiting extends InBag {
  readonly atMs: number;
  readonly order: number;
  readonly task: () => void;
}

function none(): void {}

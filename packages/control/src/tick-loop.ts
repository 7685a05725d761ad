import type { Clock } from "@guidevane/core";

/** Least time between the starts of two ticks, so that a flood of losses is one tick and not hundreds. */
const LEAST_GAP_MS = 200;

/** Runs one tick after another: each `tickMs`, and soon after `hurry`. Never two at once. */
export class TickLoop {
  readonly #clock: Clock;
  #tickMs: number;
  readonly #run: () => Promise<void>;
  #cancel = () => {};
  #startedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #hurried = false;
  #stopped = false;

  /** @param run one tick; it must not reject */
  constructor(clock: Clock, tickMs: number, run: () => Promise<void>) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#run = run;
  }

  start(): void {
    this.#begin();
  }

  /** From the next wait on. */
  pace(tickMs: number): void {
    this.#tickMs = tickMs;
  }

  /** Something happened that should not wait for the next tick. */
  hurry(): void {
    if (this.#stopped) return;
    if (this.#running !== null) this.#hurried = true;
    else this.#schedule(LEAST_GAP_MS);
  }

  /** Resolves when the tick that runs, if one does, has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }

  #schedule(gapMs: number): void {
    this.#cancel();
    const waitedMs = this.#clock.nowMs() - this.#startedMs;
    this.#cancel = this.#clock.after(Math.max(0, gapMs - waitedMs), () => this.#begin());
  }

  #begin(): void {
    this.#startedMs = this.#clock.nowMs();
    this.#hurried = false;
    this.#running = this.#run().then(() => {
      this.#running = null;
      if (!this.#stopped) this.#schedule(this.#hurried ? LEAST_GAP_MS : this.#tickMs);
    });
  }
}

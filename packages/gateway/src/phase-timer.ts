import type { Clock } from "@guidevane/core";

/** The one timer of an attempt's present phase: setting it anew ends the one before. */
export class PhaseTimer {
  readonly #clock: Clock;
  #stop: () => void = none;
  #touchedMs = 0;
  #resting = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `task` in `ms`. */
  arm(ms: number, task: () => void): void {
    this.#stop();
    this.#stop = this.#clock.after(ms, task);
  }

  /** Something came: the silence that `armIdle` watches begins again. */
  touch(nowMs: number): void {
    this.#touchedMs = nowMs;
  }

  /** While nothing is asked of the engine its silence says nothing. */
  rest(resting: boolean): void {
    this.#resting = resting;
    this.#touchedMs = this.#clock.nowMs();
  }

  /** Runs `task` after `ms` without a `touch`. Looks at the clock when time is up rather than being set anew each time. */
  armIdle(ms: number, task: () => void): void {
    const look = (): void => {
      const leftMs = this.#resting ? ms : this.#touchedMs + ms - this.#clock.nowMs();
      if (leftMs <= 0) task();
      else this.arm(leftMs, look);
    };
    look();
  }

  stop(): void {
    this.#stop();
  }
}

function none(): void {}

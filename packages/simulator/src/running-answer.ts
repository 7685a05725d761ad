import type { Clock } from "@guidevane/core";
import type { Admission } from "./engine-model.ts";

/** One request under way in an emulated engine: what is due when, and what is left to do. */
export class RunningAnswer {
  readonly admission: Admission;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #promptTokens: number;
  readonly #hang: boolean;
  readonly #timers = new Set<() => void>();
  /** Output tokens made so far. */
  tokens = 0;

  constructor(clock: Clock, admission: Admission, promptTokens: number, hang: boolean) {
    this.#clock = clock;
    this.#startMs = clock.nowMs();
    this.admission = admission;
    this.#promptTokens = promptTokens;
    this.#hang = hang;
  }

  /** Runs `task` at `ms` after admission, unless cancelled before. A hanging engine never does. */
  at(ms: number, task: () => void): void {
    if (this.#hang) return;
    // Timers cut fractions of a millisecond off; early would send a token before its time.
    const delayMs = Math.max(0, Math.ceil(ms - this.elapsedMs(this.#clock.nowMs())));
    const cancel = this.#clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      task();
    });
    this.#timers.add(cancel);
  }

  cancel(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  elapsedMs(nowMs: number): number {
    return nowMs - this.#startMs;
  }

  /** Output tokens that should have been sent by now; never fewer than were. */
  tokensDue(nowMs: number): number {
    const { ttftMs, tbotMs } = this.admission;
    const sinceFirstMs = this.elapsedMs(nowMs) - ttftMs;
    if (sinceFirstMs < 0) return this.tokens;
    return Math.max(this.tokens, 1 + Math.floor(sinceFirstMs / Math.max(tbotMs, LEAST_STEP_MS) + STEP_SLACK));
  }

  isWaiting(nowMs: number): boolean {
    return this.elapsedMs(nowMs) < this.admission.queueMs;
  }

  get heldTokens(): number {
    return this.#promptTokens + this.tokens;
  }

  /** Part of the work not done yet, 0..1, by time: work is spread evenly over the answer. */
  undone(nowMs: number): number {
    const { queueMs, totalMs } = this.admission;
    if (totalMs <= queueMs) return 0;
    return Math.min(1, Math.max(0, (totalMs - this.elapsedMs(nowMs)) / (totalMs - queueMs)));
  }
}

/** A profile may say 0 ms. */
const LEAST_STEP_MS = 1e-6;
/** A token due within a hundredth of a step is due: rounding must not cost it a whole timer. */
const STEP_SLACK = 0.01;

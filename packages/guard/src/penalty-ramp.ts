/** Part of its share that a penalised engine keeps, so that its recovery is seen. */
export const PENALTY_FLOOR = 0.02;

/** Factors on the way back, and how long each holds at least. */
const STEPS = [PENALTY_FLOOR, 0.12, 0.25, 0.5, 1] as const;
const STEP_MS = 6000;
const FULL = STEPS.length - 1;

/** At the floor at least so long; twice as long after each return that failed. */
const FLOOR_MS = 5000;
const FLOOR_MOST_MS = 20_000;
/** A return that has held so long has not failed. */
const HELD_MS = 300_000;

/**
 * A penalised engine is sent a request when it had none for so long: at the floor that is "at least one in 30 s" with
 * time for one to come by and to be answered, on the way up it keeps the way short where there is little traffic.
 */
const FLOOR_REQUEST_MS = 15_000;
const STEP_REQUEST_MS = 4000;

/** Where nothing comes even so, nothing can be learned and nothing is at stake: time alone gives a step. */
const NOTHING_COMES_MS = 30_000;

/**
 * The factor of one engine after a detection: straight to the floor, back by steps. A step takes its time *and* a good
 * answer; a new alarm leads back to the floor.
 */
export class PenaltyRamp {
  #step = FULL;
  #sinceMs = 0;
  #detectedMs = 0;
  #floorMs = FLOOR_MS;
  #fullAtMs = Number.NEGATIVE_INFINITY;
  #good = 0;
  #lastBeganMs = 0;

  get factor(): number {
    return STEPS[this.#step]!;
  }

  get active(): boolean {
    return this.#step < FULL;
  }

  get atFloor(): boolean {
    return this.#step === 0;
  }

  /** When it was last sent to the floor. */
  get detectedMs(): number {
    return this.#detectedMs;
  }

  /** An observation after which the test says "sick": to the floor. */
  alarm(nowMs: number): void {
    this.#good = 0;
    if (this.#step === 0) return;
    const failedReturn = this.active || nowMs - this.#fullAtMs < HELD_MS;
    this.#floorMs = failedReturn ? Math.min(FLOOR_MOST_MS, this.#floorMs * 2) : FLOOR_MS;
    this.#detectedMs = nowMs;
    this.#lastBeganMs = nowMs;
    this.#to(0, nowMs);
  }

  /** @param beganMs of the attempt: one from before the alarm says nothing about now */
  good(beganMs: number): void {
    if (beganMs >= this.#detectedMs) this.#good += 1;
  }

  began(nowMs: number): void {
    this.#lastBeganMs = nowMs;
  }

  tick(nowMs: number): void {
    if (!this.active) return;
    const heldMs = nowMs - this.#sinceMs;
    const enough = this.#good > 0 && heldMs >= (this.#step === 0 ? this.#floorMs : STEP_MS);
    const nothing = nowMs - Math.max(this.#lastBeganMs, this.#sinceMs) >= NOTHING_COMES_MS;
    if (enough || nothing) this.#to(this.#step + 1, nowMs);
  }

  /** Whether the next request that is its own should go to it in spite of the factor. */
  wantsRequest(nowMs: number): boolean {
    if (!this.active) return false;
    return nowMs - this.#lastBeganMs >= (this.#step === 0 ? FLOOR_REQUEST_MS : STEP_REQUEST_MS);
  }

  #to(step: number, nowMs: number): void {
    this.#step = step;
    this.#sinceMs = nowMs;
    this.#good = 0;
    if (step === FULL) this.#fullAtMs = nowMs;
  }
}

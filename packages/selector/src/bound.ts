import { type SharedState, STATE } from "./router.ts";
import { CANDIDATE, CANDIDATE_NUMBERS, CANDIDATE_WORDS, CELL, type Columns, NUMBER } from "./table-columns.ts";

/**
 * The bound on an engine's streams: over it means
 *
 *     streams > max(4, 2 × f × streams of the cell)
 *
 * f = weight × expected time, divided by the sum over the engines of the ring that take traffic: streams are rate ×
 * residence, so an engine as planned has f of them. The parts of engines that are out are left out of the sum, or half a
 * cell's death would push keys off the living. A reserve's f is 0 while the ring lives, and its part of the spare after.
 *
 * Sums are over the cell, and only made when an engine has more than four streams.
 */
export class StreamBound {
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  readonly #engines: Uint32Array;
  readonly #inFlight: Uint32Array;

  // Of the call in progress.
  #candidateAt = 0;
  #numberAt = 0;
  #ringEngines = 0;
  #candidates = 0;
  #rowAt = 0;
  #isKnown = false;
  #cellStreams = 0;
  #liveParts = 0;
  #reservesOnly = false;

  constructor({ words, numbers }: Columns, state: SharedState) {
    this.#words = words;
    this.#numbers = numbers;
    this.#engines = state.engines;
    this.#inFlight = state.inFlight;
  }

  /** @param cell place of the cell's row */
  begin(cell: number): void {
    const words = this.#words;
    this.#candidateAt = words[cell + CELL.candidateAt]!;
    this.#numberAt = words[cell + CELL.numberAt]!;
    this.#ringEngines = words[cell + CELL.engines]!;
    this.#candidates = this.#ringEngines + words[cell + CELL.reserves]!;
    this.#rowAt = words[cell + CELL.inFlightRow]! * this.#engines.length;
    this.#isKnown = false;
  }

  isOver(candidate: number): boolean {
    const streams = this.#streams(candidate);
    if (streams <= FREE_STREAMS) return false;
    if (!this.#isKnown) this.#sum();
    const counts = candidate < this.#ringEngines || this.#reservesOnly;
    const part = counts ? this.#part(candidate) : 0;
    return streams * this.#liveParts > BOUND * part * this.#cellStreams;
  }

  #sum(): void {
    this.#isKnown = true;
    this.#cellStreams = 0;
    for (let candidate = 0; candidate < this.#candidates; candidate++) this.#cellStreams += this.#streams(candidate);
    this.#reservesOnly = false;
    this.#liveParts = this.#livePartsOf(0, this.#ringEngines);
    if (this.#liveParts > 0) return;
    this.#reservesOnly = true;
    this.#liveParts = this.#livePartsOf(this.#ringEngines, this.#candidates);
  }

  #livePartsOf(from: number, to: number): number {
    let sum = 0;
    for (let candidate = from; candidate < to; candidate++) {
      const state = Atomics.load(this.#engines, this.#slotOf(candidate));
      if ((state & (STATE.out | STATE.draining | STATE.outByProbe)) === 0) sum += this.#part(candidate);
    }
    return sum;
  }

  #part(candidate: number): number {
    return this.#numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.part]!;
  }

  #streams(candidate: number): number {
    return Atomics.load(this.#inFlight, this.#rowAt + this.#slotOf(candidate));
  }

  #slotOf(candidate: number): number {
    return this.#words[this.#candidateAt + candidate * CANDIDATE_WORDS + CANDIDATE.slot]!;
  }
}

/** So many streams are never too many. */
const FREE_STREAMS = 4;
/**
 * Less turns keys away at the load's own noise: at 1.25, without a memory of moves, only 82–97 % of follow-ups found their
 * cache in model runs. More lets one engine queue while others idle.
 */
const BOUND = 2;

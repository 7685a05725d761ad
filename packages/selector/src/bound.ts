import { type SharedState, STATE, streamsAt, streamsOfCell } from "./shared-state.ts";
import { CANDIDATE, CANDIDATE_NUMBERS, CANDIDATE_WORDS, CELL, type Columns, HEADER, NUMBER } from "./table-columns.ts";

/**
 * The bound on an engine's streams: over it means
 *
 *     streams > max(4, 2 × part, part + 4 × √part),    part = f × streams of the cell
 *
 * f = weight × expected time, divided by the sum over the engines of the ring that take traffic: streams are rate ×
 * residence, so an engine as planned has f of them. The parts of engines that are out are left out of the sum, or half a
 * cell's death would push keys off the living. A reserve's f is 0 while the ring lives, and its part of the spare after.
 *
 * √part is the spread of a count by chance (Poisson): with few streams to an engine, as at each of several gateways, twice
 * the part is soon reached by chance alone.
 *
 * The sum of parts is kept until an engine's state changes; the streams of the cell are a count of their own.
 */
export class StreamBound {
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  readonly #state: SharedState;
  /** Per cell: the state's version that its sum is of, `NO_VERSION` before the first. */
  readonly #versions: Float64Array;
  /** Per cell: the sum of the parts of the ring's engines that take traffic, or of the reserves where none does. */
  readonly #sums: Float64Array;
  readonly #reservesOnly: Uint8Array;

  // Of the call in progress.
  #candidateAt = 0;
  #numberAt = 0;
  #ringEngines = 0;
  #candidates = 0;
  #row = 0;
  #place = 0;
  #isKnown = false;
  #cellStreams = 0;

  constructor({ words, numbers }: Columns, state: SharedState) {
    this.#words = words;
    this.#numbers = numbers;
    this.#state = state;
    const cells = words[HEADER.cells]!;
    this.#versions = new Float64Array(cells).fill(NO_VERSION);
    this.#sums = new Float64Array(cells);
    this.#reservesOnly = new Uint8Array(cells);
  }

  /** @param cell place of the cell's row */
  begin(cell: number): void {
    const words = this.#words;
    this.#candidateAt = words[cell + CELL.candidateAt]!;
    this.#numberAt = words[cell + CELL.numberAt]!;
    this.#ringEngines = words[cell + CELL.engines]!;
    this.#candidates = this.#ringEngines + words[cell + CELL.reserves]!;
    this.#row = words[cell + CELL.inFlightRow]!;
    this.#place = words[cell + CELL.place]!;
    this.#isKnown = false;
  }

  isOver(candidate: number): boolean {
    const streams = this.#streams(candidate);
    if (streams <= FREE_STREAMS) return false;
    if (!this.#isKnown) this.#find();
    const counts = candidate < this.#ringEngines || this.#reservesOnly[this.#place] === 1;
    const part = counts ? this.#part(candidate) : 0;
    // Both sides times the sum, so that nothing is divided.
    const sum = this.#sums[this.#place]!;
    const own = streams * sum;
    const planned = part * this.#cellStreams;
    const excess = own - planned;
    return own > BOUND * planned && excess * excess > CHANCE * CHANCE * planned * sum;
  }

  /** Whether `one` has fewer streams for its part than `other`. */
  hasFewer(one: number, other: number): boolean {
    return this.#streams(one) * this.#part(other) < this.#streams(other) * this.#part(one);
  }

  #find(): void {
    this.#isKnown = true;
    this.#cellStreams = streamsOfCell(this.#state, this.#row);
    // Before the words: one that changes meanwhile makes the sum of an older version.
    const version = Atomics.load(this.#state.version, 0);
    if (this.#versions[this.#place] === version) return;
    const ring = this.#livePartsOf(0, this.#ringEngines);
    this.#reservesOnly[this.#place] = ring > 0 ? 0 : 1;
    this.#sums[this.#place] = ring > 0 ? ring : this.#livePartsOf(this.#ringEngines, this.#candidates);
    this.#versions[this.#place] = version;
  }

  #livePartsOf(from: number, to: number): number {
    let sum = 0;
    for (let candidate = from; candidate < to; candidate++) {
      const state = Atomics.load(this.#state.engines, this.#slotOf(candidate));
      if ((state & (STATE.out | STATE.draining | STATE.outByProbe)) === 0) sum += this.#part(candidate);
    }
    return sum;
  }

  #part(candidate: number): number {
    return this.#numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.part]!;
  }

  #streams(candidate: number): number {
    return streamsAt(this.#state, this.#row, this.#slotOf(candidate));
  }

  #slotOf(candidate: number): number {
    return this.#words[this.#candidateAt + candidate * CANDIDATE_WORDS + CANDIDATE.slot]!;
  }
}

const NO_VERSION = -1;
/** So many streams are never too many. */
const FREE_STREAMS = 4;
/**
 * Less turns keys away at the load's own noise: at 1.25, without a memory of moves, only 82–97 % of follow-ups found their
 * cache in model runs. More lets one engine queue while others idle.
 */
const BOUND = 2;
/**
 * Standard deviations of a count that are no reason to move a conversation. At none, eight gateways that share no memory
 * lose the cache of every tenth follow-up, and the mean of E2E is 13–49 % above hashing alone; at 6 more than half of a
 * burst of 64 streams could stay at one of four engines (docs/decisions/0010-bound-and-chance.md).
 */
const CHANCE = 4;

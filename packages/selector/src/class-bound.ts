import { StreamBound } from "./bound.ts";
import type { SharedState } from "./shared-state.ts";
import type { RoutingTable } from "./table.ts";
import {
  CANDIDATE,
  CANDIDATE_NUMBERS,
  CANDIDATE_WORDS,
  CELL,
  CLASS,
  CLASS_WORDS,
  HEADER,
  NO_CELL,
  NUMBER,
} from "./table-columns.ts";

/**
 * The routers' bound, asked about one class at a time: for a yardstick that chooses by other facts and is to be held to
 * the very same bound.
 */
export class ClassBound {
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  readonly #bound: StreamBound;
  /** By state slot: candidate of the class asked about. */
  readonly #candidates = new Map<number, number>();

  constructor({ columns }: RoutingTable, state: SharedState) {
    this.#words = columns.words;
    this.#numbers = columns.numbers;
    this.#bound = new StreamBound(columns, state);
  }

  /**
   * Answers are about this class from now on, and its streams as they are now.
   *
   * @returns state slots of the engines that its ring gives a share
   */
  begin(requestClass: number): number[] {
    const words = this.#words;
    this.#candidates.clear();
    const cell = words[words[HEADER.classAt]! + requestClass * CLASS_WORDS + CLASS.cell]!;
    if (cell === NO_CELL) return [];
    this.#bound.begin(cell);
    const candidateAt = words[cell + CELL.candidateAt]!;
    const numberAt = words[cell + CELL.numberAt]!;
    for (let candidate = 0; candidate < words[cell + CELL.engines]!; candidate++) {
      if (!(this.#numbers[numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.weight]! > 0)) continue;
      this.#candidates.set(words[candidateAt + candidate * CANDIDATE_WORDS + CANDIDATE.slot]!, candidate);
    }
    return [...this.#candidates.keys()];
  }

  isOver(slot: number): boolean {
    return this.#bound.isOver(this.#candidates.get(slot)!);
  }

  /** Whether `one` has fewer streams for its part than `other`. */
  hasFewer(one: number, other: number): boolean {
    return this.#bound.hasFewer(this.#candidates.get(one)!, this.#candidates.get(other)!);
  }
}

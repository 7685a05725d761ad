import { GuidevaneError } from "@guidevane/core";
import {
  clearCell,
  clearEngine,
  createSharedState,
  ENGINES_MAX,
  type SharedState,
  STATE_HEALTHY,
  setEngine,
  streamsOfEngine,
} from "./shared-state.ts";

/** How much a process can hold at once: of the snapshot in use, and of those that streams still run on. */
export interface SlotLimits {
  /** Default 4,096; at most 65,534. */
  readonly engines?: number;
  /** Default 256. Each costs 4 bytes per engine slot and thread of shared memory, touched only when used. */
  readonly cells?: number;
  /** Threads that route. Default 1. */
  readonly threads?: number;
  /** Moved conversations to remember, 8 bytes each: rounded up to a power of two. Default 1,048,576. */
  readonly moves?: number;
}

/**
 * Gives each engine id a state slot and each cell an in-flight row, and the memory that they index. A slot is given to
 * another engine only once no table holds it; a stream keeps the table that it was routed by. One per process, on its main
 * thread; its `state` goes to every thread.
 */
export class SlotRegistry {
  /** Handed to every router of the process. New slots start healthy, with no streams. */
  readonly state: SharedState;
  readonly #engines: Holds;
  readonly #cells: Holds;

  constructor({ engines = 4096, cells = 256, threads = 1, moves = 1_048_576 }: SlotLimits = {}) {
    if (!(engines <= ENGINES_MAX))
      throw new RangeError(`a process has at most ${ENGINES_MAX} engine slots, not ${engines}`);
    this.#engines = new Holds("engine", engines);
    this.#cells = new Holds("cell", cells);
    const entries = 2 ** Math.ceil(Math.log2(Math.max(moves, 8)));
    this.state = createSharedState({ engines, cells, threads, moves: entries });
  }

  /**
   * Holds the slot of an engine, giving it one where it has none.
   *
   * @throws GuidevaneError `bad_snapshot` when all slots are held
   */
  holdEngine(id: string): number {
    const { slot, fresh } = this.#engines.hold(id);
    if (fresh) {
      setEngine(this.state, slot, STATE_HEALTHY);
      clearEngine(this.state, slot);
    }
    return slot;
  }

  releaseEngine(slot: number): void {
    this.#engines.release(slot);
  }

  /**
   * Holds the in-flight row of a cell.
   *
   * @throws GuidevaneError `bad_snapshot` when all rows are held
   */
  holdCell(key: string): number {
    const { slot, fresh } = this.#cells.hold(key);
    if (fresh) clearCell(this.state, slot);
    return slot;
  }

  releaseCell(row: number): void {
    this.#cells.release(row);
  }

  /** Requests in flight at an engine, of all cells. */
  inFlightAt(id: string): number {
    const slot = this.slotOf(id);
    return slot === null ? 0 : streamsOfEngine(this.state, slot);
  }

  /** The engine that has this slot, held or not yet given away; null for a slot never used. */
  engineAt(slot: number): string | null {
    return this.#engines.nameAt(slot);
  }

  /** The slot of an engine that is held, else null. */
  slotOf(id: string): number | null {
    return this.#engines.slotOf(id);
  }
}

/** Names to numbers, counted. A name keeps its number while it is held, and after that until another needs it. */
class Holds {
  readonly #what: string;
  readonly #size: number;
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #counts: number[] = [];
  /** Slots that nobody holds, longest unheld first. */
  readonly #idle = new Set<number>();

  constructor(what: string, size: number) {
    this.#what = what;
    this.#size = size;
  }

  hold(name: string): { slot: number; fresh: boolean } {
    const known = this.#slots.get(name);
    if (known !== undefined) {
      this.#idle.delete(known);
      this.#counts[known]!++;
      return { slot: known, fresh: false };
    }
    const slot = this.#take();
    this.#slots.set(name, slot);
    this.#names[slot] = name;
    this.#counts[slot] = 1;
    return { slot, fresh: true };
  }

  release(slot: number): void {
    const count = this.#counts[slot]! - 1;
    this.#counts[slot] = count;
    if (count === 0) this.#idle.add(slot);
  }

  nameAt(slot: number): string | null {
    return this.#names[slot] ?? null;
  }

  slotOf(name: string): number | null {
    const slot = this.#slots.get(name);
    return slot === undefined || this.#counts[slot] === 0 ? null : slot;
  }

  #take(): number {
    if (this.#names.length < this.#size) return this.#names.length;
    const [slot] = this.#idle;
    if (slot === undefined)
      throw new GuidevaneError("bad_snapshot", `all ${this.#size} ${this.#what} slots of this process are in use`);
    this.#idle.delete(slot);
    this.#slots.delete(this.#names[slot]!);
    return slot;
  }
}

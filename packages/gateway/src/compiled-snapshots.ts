import { type ClusterSnapshot, type PackedSnapshot, unpackSnapshot } from "@guidevane/core";
import type { RetryRows } from "@guidevane/guard";
import { holdSlots, type RoutingTable, type SlotRegistry } from "@guidevane/selector";
import { ENGINES_A_TURN, nextTurn } from "./loop-turns.ts";
import type { ReadSnapshot } from "./snapshot-reader.ts";

/** Where a snapshot came from. */
export type SnapshotSource = "control" | "disk" | "bootstrap";

/** A snapshot whose names have their slots in shared memory: what request threads load. Plain data. */
export interface CompiledSnapshot {
  /** Counts compilations of this process; names this one between threads. */
  readonly number: number;
  readonly packed: PackedSnapshot;
  readonly source: SnapshotSource;
  readonly table: RoutingTable;
  /** Of each class, by name. */
  readonly retryRows: ReadonlyMap<string, RetryRows>;
}

/**
 * Compiles snapshots for the process's request threads, and lets go of the slots of each one when every thread that
 * loaded it has no request left that was routed by it. The last one handed out is held in any case: when all threads died
 * at once, those that replace them load it.
 */
export class CompiledSnapshots {
  readonly #registry: SlotRegistry;
  readonly #retryRowsOf: (snapshot: ClusterSnapshot) => ReadonlyMap<string, RetryRows>;
  readonly #onGone: () => void;
  readonly #held = new Map<number, Held>();
  #count = 0;
  /** Handed out last; null before the first. */
  #inUse: number | null = null;

  /** @param onGone is told when a snapshot is used no more by any thread */
  constructor(
    registry: SlotRegistry,
    retryRowsOf: (snapshot: ClusterSnapshot) => ReadonlyMap<string, RetryRows>,
    onGone: () => void,
  ) {
    this.#registry = registry;
    this.#retryRowsOf = retryRowsOf;
    this.#onGone = onGone;
  }

  /**
   * Its slots are held until another one is handed to threads and those that had this one have let go of it. Rejects with
   * `bad_snapshot` when the process has no slot left for an engine or a cell.
   */
  async compile(read: ReadSnapshot, source: SnapshotSource): Promise<CompiledSnapshot> {
    const { slots, release } = holdSlots(read.names, this.#registry);
    try {
      const { packed, table } = await read.compile(slots);
      // To take it from another thread was enough for a turn.
      if (packed.columns.engines.length > ENGINES_A_TURN) await nextTurn();
      const retryRows = this.#retryRowsOf(unpackSnapshot(packed));
      const compiled = { number: this.#count++, packed, source, table, retryRows };
      this.#held.set(compiled.number, { compiled, holders: new Set([MAKER]), release });
      return compiled;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** These threads will load it: each lets go of it once. */
  handTo(number: number, threads: Iterable<number>): void {
    for (const thread of threads) this.#held.get(number)?.holders.add(thread);
    const before = this.#inUse;
    this.#inUse = number;
    if (before !== null) this.#letGo(before, MAKER);
  }

  /** A thread that replaces one that died loads it, and none of those that were handed to the dead one meanwhile. */
  handToNew(number: number, thread: number): void {
    this.letGoOfAll(thread);
    this.#held.get(number)?.holders.add(thread);
  }

  /** A thread has no more use for it. */
  letGo(number: number, thread: number): void {
    this.#letGo(number, thread);
  }

  /** A thread died: nothing is used by it. */
  letGoOfAll(thread: number): void {
    for (const number of [...this.#held.keys()]) this.#letGo(number, thread);
  }

  /** Snapshots that a request of some thread may still be routed by. */
  inUse(): ClusterSnapshot[] {
    return [...this.#held.values()].map(({ compiled }) => unpackSnapshot(compiled.packed));
  }

  #letGo(number: number, holder: Holder): void {
    const held = this.#held.get(number);
    if (held === undefined || !held.holders.delete(holder) || held.holders.size > 0) return;
    this.#held.delete(number);
    held.release();
    this.#onGone();
  }
}

/** Holds a snapshot that no thread has yet, and the one in use. */
const MAKER = "maker";
type Holder = number | typeof MAKER;

interface Held {
  readonly compiled: CompiledSnapshot;
  readonly holders: Set<Holder>;
  /** Lets go of its slots. */
  release(): void;
}

import type { ClusterSnapshot } from "@guidevane/core";
import type { RetryRows } from "@guidevane/guard";
import { compileTable, type RoutingTable, type SlotRegistry } from "@guidevane/selector";

/** Where a snapshot came from. */
export type SnapshotSource = "control" | "disk" | "bootstrap";

/** A snapshot whose names have their slots in shared memory: what request threads load. Plain data. */
export interface CompiledSnapshot {
  /** Counts compilations of this process; names this one between threads. */
  readonly number: number;
  readonly snapshot: ClusterSnapshot;
  readonly source: SnapshotSource;
  readonly table: RoutingTable;
  /** Of each class, by name. */
  readonly retryRows: ReadonlyMap<string, RetryRows>;
}

/**
 * Compiles snapshots for the process's request threads, and lets go of the slots of each one when every thread that
 * loaded it has no request left that was routed by it.
 */
export class CompiledSnapshots {
  readonly #registry: SlotRegistry;
  readonly #retryRowsOf: (snapshot: ClusterSnapshot) => ReadonlyMap<string, RetryRows>;
  readonly #onGone: () => void;
  readonly #held = new Map<number, Held>();
  #count = 0;

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
   * @param holders the threads that will load it; each lets go of it once
   * @throws GuidevaneError `bad_snapshot` when the process has no slot left for an engine or a cell
   */
  compile(snapshot: ClusterSnapshot, source: SnapshotSource, holders: Iterable<unknown>): CompiledSnapshot {
    const { table, release } = compileTable(snapshot, this.#registry);
    const retryRows = this.#retryRowsOf(snapshot);
    const compiled = { number: this.#count++, snapshot, source, table, retryRows };
    this.#held.set(compiled.number, { compiled, holders: new Set(holders), release });
    return compiled;
  }

  /** Another thread loads it too: one that replaces a thread that died. */
  hold(number: number, holder: unknown): void {
    this.#held.get(number)?.holders.add(holder);
  }

  /** A thread has no more use for it. */
  letGo(number: number, holder: unknown): void {
    const held = this.#held.get(number);
    if (held === undefined || !held.holders.delete(holder) || held.holders.size > 0) return;
    this.#held.delete(number);
    held.release();
    this.#onGone();
  }

  /** A thread died: nothing is used by it. */
  letGoOfAll(holder: unknown): void {
    for (const number of [...this.#held.keys()]) this.letGo(number, holder);
  }

  /** Snapshots that a request of some thread may still be routed by. */
  inUse(): ClusterSnapshot[] {
    return [...this.#held.values()].map(({ compiled }) => compiled.snapshot);
  }
}

interface Held {
  readonly compiled: CompiledSnapshot;
  readonly holders: Set<unknown>;
  /** Lets go of its slots. */
  release(): void;
}

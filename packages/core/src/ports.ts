import type { ClusterSnapshot, Stamp } from "./snapshot.ts";
import type { AdminState } from "./words.ts";

/** What one tick publishes: the snapshot of every cluster, and the problem that they were solved from. */
export interface Publication {
  readonly clusters: ReadonlyMap<string, ClusterSnapshot>;
  /** Plain JSON; `verifyCertificate` of the optimizer works from it. */
  readonly problem: unknown;
  /** What it was published for, to be read after "because". Left out by versions before this was kept. */
  readonly why?: string;
}

/** A publication as a store keeps it: stamped. */
export interface StoredPublication extends Publication, Stamp {}

/** What an operator has said, kept until said otherwise. */
export interface OperatorState {
  /** Engines not simply `active`. */
  readonly engines: Readonly<Record<string, AdminState>>;
  /** Nothing is published while it is set. Left out: not frozen. */
  readonly frozen?: boolean;
  /** The version whose weights an operator brought back, while frozen on it. */
  readonly rolledBackTo?: number;
  /** Weights that an operator set; one a cell at most. Left out: none. */
  readonly pins?: readonly Pin[];
}

/** Weights of one cell by an operator's word. */
export interface Pin {
  readonly cluster: string;
  readonly class: string;
  /** By engine id; they sum to 1. */
  readonly weights: Readonly<Record<string, number>>;
  /** ISO 8601 UTC: from then on the optimizer has the cell again. */
  readonly until: string;
}

/** Where publications are kept. A reader never sees half of one. */
export interface Store {
  /**
   * Publishes under the next version; the snapshots' own version and epoch are set from the stamp returned.
   *
   * @throws GuidevaneError `store_conflict` when the present version is not `expectedVersion` (0 = nothing published yet);
   * `store_replaced` when a later writer has taken the store over, for good
   */
  put(publication: Publication, expectedVersion: number): Promise<StoredPublication>;
  /** The newest whole publication, or null where there is none. @throws GuidevaneError `store_unreadable` */
  get(): Promise<StoredPublication | null>;
  /**
   * One of the older publications that are kept, or null where it is not.
   *
   * @throws GuidevaneError `store_unreadable` or `bad_snapshot` when it is damaged
   */
  getVersion(version: number): Promise<StoredPublication | null>;
  /** Versions kept, newest first. */
  versions(): Promise<readonly number[]>;
  /** Calls `onChange` after each publication of any process; returns the way to stop. */
  watch(onChange: (stamp: Stamp) => void): () => void;
  /** Keeps it whole, in place of what was said before. */
  putOperator(state: OperatorState): Promise<void>;
  /** Nothing said is a state with no entries. */
  getOperator(): Promise<OperatorState>;
}

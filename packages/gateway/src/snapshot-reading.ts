import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type ClusterSnapshot, type PackedSnapshot, packSnapshot, parseClusterSnapshot } from "@guidevane/core";
import {
  namesOf,
  type RouterFactory,
  type RoutingTable,
  type SharedState,
  type SharedTable,
  type SnapshotNames,
  type TableSlots,
  translate,
} from "@guidevane/selector";
import { SNAPSHOT_MAX_BYTES, type SnapshotText } from "./snapshot-text.ts";

/** Why a snapshot was not taken. */
export type RefusalReason = "checksum" | "schema" | "cluster" | "version" | "slots";

export interface Refused {
  readonly kind: "refused";
  readonly reason: RefusalReason;
  readonly message: string;
}

/** What must be known of a snapshot before it is compiled. */
export interface SnapshotFacts {
  readonly kind: "read";
  readonly cluster: string;
  readonly version: number;
  readonly epoch: number;
  readonly names: SnapshotNames;
}

/** A snapshot that request threads can load. Plain data, what is large in shared memory. */
export interface PreparedSnapshot {
  readonly packed: PackedSnapshot;
  readonly table: RoutingTable;
}

/** The work on a snapshot that can be done on any thread: it needs no more than its bytes and the slots of its names. */
export class SnapshotReading {
  readonly #factory: RouterFactory;
  readonly #state: SharedState;
  #snapshot: ClusterSnapshot | null = null;
  /** Held for the request threads, which have loaded it by the time that there is another. */
  #shared: SharedTable | null = null;

  constructor(factory: RouterFactory, state: SharedState) {
    this.#factory = factory;
    this.#state = state;
  }

  /** Inflates and checks one: checksum, schema, sums. It is held until it is compiled, or the next one is read. */
  async read({ bytes, gzipped, checksum }: SnapshotText): Promise<SnapshotFacts | Refused> {
    let snapshot: ClusterSnapshot;
    try {
      const json = gzipped
        ? await inflate(Buffer.from(bytes), { maxOutputLength: SNAPSHOT_MAX_BYTES })
        : Buffer.from(bytes);
      if (checksum !== null) {
        const found = createHash("sha256").update(json).digest("hex");
        if (found !== checksum.toLowerCase())
          return refused("checksum", `the body's SHA-256 is ${found}, the header says ${checksum}`);
      }
      snapshot = parseClusterSnapshot(json.toString());
    } catch (error) {
      return refused("schema", error instanceof Error ? error.message : String(error));
    }
    return this.take(snapshot);
  }

  /** Takes one that needs no check, as `read` does. */
  take(snapshot: ClusterSnapshot): SnapshotFacts {
    this.#snapshot = snapshot;
    const { cluster, version, epoch } = snapshot;
    return { kind: "read", cluster, version, epoch, names: namesOf(snapshot) };
  }

  /** The one that was read last, with the slots of its names. */
  compile(slots: TableSlots): PreparedSnapshot {
    const snapshot = this.#snapshot;
    if (snapshot === null) throw new Error("no snapshot was read");
    this.#snapshot = null;
    this.#shared = this.#factory.share(translate(snapshot, slots), this.#state);
    return { packed: packSnapshot(snapshot), table: this.#shared.table };
  }
}

export function refused(reason: RefusalReason, message: string): Refused {
  return { kind: "refused", reason, message };
}

const inflate = promisify(gunzip);

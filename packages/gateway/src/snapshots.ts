import { createHash } from "node:crypto";
import { type ClusterSnapshot, GuidevaneError, isNewer, parseClusterSnapshot, snapshotTag } from "@guidevane/core";
import type { CompiledSnapshot, SnapshotSource } from "./compiled-snapshots.ts";

/** Why a snapshot was not taken. */
export type RefusalReason = "checksum" | "schema" | "cluster" | "version" | "slots";

export type Offered =
  | { readonly kind: "taken"; readonly tag: string }
  /** It is the one in use. */
  | { readonly kind: "same" }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string };

export interface SnapshotsOptions {
  readonly cluster: string;
  /** @throws GuidevaneError `bad_snapshot` when the process has no room for it */
  readonly compile: (snapshot: ClusterSnapshot, source: SnapshotSource) => CompiledSnapshot;
  /** Called after a swap, with what requests route by from now on. */
  readonly onSwap: (compiled: CompiledSnapshot) => void;
}

/** Holds the snapshot in use, and lets another one take its place only whole and only if it passes every check. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  #current: CompiledSnapshot;

  /** @param first what to route by until something better is offered */
  constructor(first: CompiledSnapshot, options: SnapshotsOptions) {
    this.#options = options;
    this.#current = first;
  }

  get current(): CompiledSnapshot {
    return this.#current;
  }

  /** The tag of the snapshot in use, null while it is bootstrap's own. */
  get tag(): string | null {
    return this.#current.source === "bootstrap" ? null : snapshotTag(this.#current.snapshot);
  }

  /**
   * @param json text of the snapshot
   * @param checksum SHA-256 of the text in hex, where the sender gave one
   */
  offer(json: string, source: SnapshotSource, checksum: string | null): Offered {
    if (checksum !== null) {
      const found = createHash("sha256").update(json).digest("hex");
      if (found !== checksum.toLowerCase())
        return refused("checksum", `the body's SHA-256 is ${found}, the header says ${checksum}`);
    }
    let snapshot: ClusterSnapshot;
    try {
      snapshot = parseClusterSnapshot(json);
    } catch (error) {
      return refused("schema", error instanceof Error ? error.message : String(error));
    }
    return this.#take(snapshot, source);
  }

  #take(snapshot: ClusterSnapshot, source: SnapshotSource): Offered {
    const { cluster, compile, onSwap } = this.#options;
    if (snapshot.cluster !== cluster)
      return refused("cluster", `it is for cluster ${snapshot.cluster}, this gateway is of ${cluster}`);
    const tag = snapshotTag(snapshot);
    if (tag === this.tag) return { kind: "same" };
    const present = this.#current;
    if (present.source !== "bootstrap" && !isNewer(snapshot, present.snapshot))
      return refused("version", `${tag} is older than ${this.tag}`);
    let next: CompiledSnapshot;
    try {
      next = compile(snapshot, source);
    } catch (error) {
      if (!GuidevaneError.is(error)) throw error;
      return refused("slots", error.message);
    }
    this.#current = next;
    onSwap(next);
    return { kind: "taken", tag };
  }
}

function refused(reason: RefusalReason, message: string): Offered {
  return { kind: "refused", reason, message };
}

import { type ClusterSnapshot, GuidevaneError, isNewer, snapshotTag, unpackSnapshot } from "@guidevane/core";
import type { CompiledSnapshot, SnapshotSource } from "./compiled-snapshots.ts";
import type { ReadSnapshot } from "./snapshot-reader.ts";
import { type Refused, refused } from "./snapshot-reading.ts";
import type { SnapshotText } from "./snapshot-text.ts";

export type Offered =
  | { readonly kind: "taken"; readonly tag: string }
  /** It is the one in use. */
  | { readonly kind: "same" }
  | Refused;

export interface SnapshotsOptions {
  readonly cluster: string;
  readonly read: (text: SnapshotText) => Promise<ReadSnapshot | Refused>;
  /** Rejects with `bad_snapshot` when the process has no room for it. */
  readonly compile: (snapshot: ReadSnapshot, source: SnapshotSource) => Promise<CompiledSnapshot>;
  /** Makes everything else ready for it, before the swap. */
  readonly prepare: (compiled: CompiledSnapshot) => Promise<void>;
  /** Called at a swap, with what requests are to be routed by from now on. */
  readonly onSwap: (compiled: CompiledSnapshot) => Promise<void>;
}

/** Holds the snapshot in use, and lets another one take its place only whole and only if it passes every check. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  #current: CompiledSnapshot;
  #last: Promise<unknown> = Promise.resolve();

  /** @param first what to route by until something better is offered */
  constructor(first: CompiledSnapshot, options: SnapshotsOptions) {
    this.#options = options;
    this.#current = first;
  }

  get current(): CompiledSnapshot {
    return this.#current;
  }

  get snapshot(): ClusterSnapshot {
    return unpackSnapshot(this.#current.packed);
  }

  /** The tag of the snapshot in use, null while it is bootstrap's own. */
  get tag(): string | null {
    return this.#current.source === "bootstrap" ? null : snapshotTag(this.#current.packed.head);
  }

  /** Those that are offered while one is read wait for it. Rejects when it can't be read for no fault of its own. */
  offer(text: SnapshotText, source: SnapshotSource): Promise<Offered> {
    const offered = this.#last.then(() => this.#offer(text, source));
    this.#last = offered.catch(() => {});
    return offered;
  }

  async #offer(text: SnapshotText, source: SnapshotSource): Promise<Offered> {
    const read = await this.#options.read(text);
    if (read.kind === "refused") return read;
    const { cluster, compile, prepare, onSwap } = this.#options;
    if (read.cluster !== cluster)
      return refused("cluster", `it is for cluster ${read.cluster}, this gateway is of ${cluster}`);
    const tag = snapshotTag(read);
    if (tag === this.tag) return { kind: "same" };
    const present = this.#current;
    if (present.source !== "bootstrap" && !isNewer(read, present.packed.head))
      return refused("version", `${tag} is older than ${this.tag}`);
    let next: CompiledSnapshot;
    try {
      next = await compile(read, source);
    } catch (error) {
      if (!GuidevaneError.is(error)) throw error;
      return refused("slots", error.message);
    }
    await prepare(next);
    this.#current = next;
    await onSwap(next);
    return { kind: "taken", tag };
  }
}

import type { ClusterSnapshot } from "@guidevane/core";
import type { TableSlots } from "@guidevane/selector";
import type { PreparedSnapshot, Refused, SnapshotFacts, SnapshotReading } from "./snapshot-reading.ts";
import type { SnapshotText } from "./snapshot-text.ts";
import type { SnapshotThread } from "./snapshot-thread.ts";

/** One that was read and found good. */
export interface ReadSnapshot extends SnapshotFacts {
  /** Once, and before another one is read. Rejects when the thread that read it is gone. */
  compile(slots: TableSlots): Promise<PreparedSnapshot>;
}

/**
 * JSON of so many bytes is read in about a millisecond; gzip makes a snapshot about a sixth of it. To hand it to another
 * thread costs as much, and the thread some ten megabytes, which a small fleet's gateway need not have.
 */
const SMALL_BYTES = 16_384;
const GZIP_MAKES = 6;

/** Reads snapshots one after the other: a small one here, a large one on a thread that routes nothing. */
export class SnapshotReader {
  readonly #here: SnapshotReading;
  readonly #thread: SnapshotThread;

  constructor(here: SnapshotReading, thread: SnapshotThread) {
    this.#here = here;
    this.#thread = thread;
  }

  /** Rejects when the thread that reads it dies of it. */
  async read(text: SnapshotText): Promise<ReadSnapshot | Refused> {
    const large = text.bytes.length * (text.gzipped ? GZIP_MAKES : 1) > SMALL_BYTES;
    const found = large ? await this.#thread.read(text) : await this.#here.read(text);
    if (found.kind === "refused") return found;
    return { ...found, compile: async (slots) => (large ? this.#thread.compile(slots) : this.#here.compile(slots)) };
  }

  /** One that was made here. */
  own(snapshot: ClusterSnapshot): ReadSnapshot {
    return { ...this.#here.take(snapshot), compile: async (slots) => this.#here.compile(slots) };
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }
}

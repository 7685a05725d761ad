import { createReadStream, createWriteStream } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { gather, type SnapshotText } from "./snapshot-text.ts";

/** So much is read, inflated or written at a time: more at once would keep requests waiting. */
const PIECE_BYTES = 65_536;

/**
 * The last good snapshot of a cluster on disk, so that a gateway starts without a control plane. Written to the side and
 * renamed: a reader finds the old one or the new one, whole.
 */
export class SnapshotFile {
  readonly path: string;
  #last: Promise<void> = Promise.resolve();

  constructor(stateDir: string, cluster: string) {
    this.path = join(stateDir, `snapshot-${cluster}.json`);
  }

  /** Text of the file, or null where there is none. @throws what reading throws */
  async read(): Promise<SnapshotText | null> {
    try {
      return { bytes: await gather(createReadStream(this.path)), gzipped: false, checksum: null };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Writes one after the other, so that a newer snapshot is never replaced by an older one. @throws what writing throws */
  write(text: SnapshotText): Promise<void> {
    const next = this.#last.then(
      () => this.#replace(text),
      () => this.#replace(text),
    );
    this.#last = next;
    return next;
  }

  async #replace({ bytes, gzipped }: SnapshotText): Promise<void> {
    const aside = `${this.path}.${process.pid}.tmp`;
    const source = Readable.from(piecesOf(bytes));
    const target = createWriteStream(aside, { flush: true });
    if (gzipped) await pipeline(source, createGunzip({ chunkSize: PIECE_BYTES }), target);
    else await pipeline(source, target);
    await rename(aside, this.path);
  }
}

/** Copies, since streams take no shared memory. */
function* piecesOf(bytes: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield Buffer.from(bytes.subarray(at, at + PIECE_BYTES));
}

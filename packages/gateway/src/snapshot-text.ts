import { nextTurn } from "./loop-turns.ts";

/** A snapshot as somebody sent it. */
export interface SnapshotText {
  /** JSON in UTF-8, compressed or not. In shared memory another thread reads it without a copy. */
  readonly bytes: Uint8Array;
  readonly gzipped: boolean;
  /** SHA-256 of the JSON in hex, where the sender gave one. */
  readonly checksum: string | null;
}

export function textOf(json: string): SnapshotText {
  return { bytes: Buffer.from(json), gzipped: false, checksum: null };
}

/** Far above any fleet's: 1,000 cells of 65,536 slots come to 90 MB. */
export const SNAPSHOT_MAX_BYTES: number = 256 * 1024 * 1024;

/**
 * Gathers what comes in pieces in shared memory, piece by piece as it comes: large bodies are never copied in one go.
 *
 * @throws RangeError when it is more than a snapshot may be
 */
export async function gather(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const memory = new SharedArrayBuffer(0, { maxByteLength: SNAPSHOT_MAX_BYTES });
  const bytes = new Uint8Array(memory);
  for await (const piece of pieces) {
    const at = memory.byteLength;
    if (at + piece.length > SNAPSHOT_MAX_BYTES)
      throw new RangeError(`a snapshot has at most ${SNAPSHOT_MAX_BYTES} bytes; this one has more`);
    memory.grow(at + piece.length);
    bytes.set(piece, at);
    // All pieces may be there at once, and new memory is slow.
    await nextTurn();
  }
  return bytes;
}

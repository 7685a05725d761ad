import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { decodeRing, type SnapshotCell, type StoredPublication, snapshotTag } from "@guidevane/core";

export { keysMoved } from "@guidevane/optimizer";

const zip = promisify(gzip);

/** A cluster's snapshot as it goes over the wire. */
export interface SnapshotBody {
  /** `EPOCH-VERSION`. */
  readonly tag: string;
  readonly json: Buffer;
  readonly gzipped: Buffer;
  /** SHA-256, hex, of the JSON before compression: what the reader parses is what it checks. */
  readonly sha256: string;
}

/** Fraction of the keys of each cell that an engine owns: by engine id, then cluster, then class. */
export type Shares = ReadonlyMap<string, Readonly<Record<string, Readonly<Record<string, number>>>>>;

/** The last good publication, ready to be served. Replaced whole. */
export class Published {
  #current: StoredPublication | null = null;
  #bodies: ReadonlyMap<string, SnapshotBody> = new Map();
  #shares: Shares = new Map();
  readonly #listeners = new Set<() => void>();

  get current(): StoredPublication | null {
    return this.#current;
  }

  get shares(): Shares {
    return this.#shares;
  }

  bodyOf(cluster: string): SnapshotBody | undefined {
    return this.#bodies.get(cluster);
  }

  async replace(next: StoredPublication): Promise<void> {
    const bodies = new Map<string, SnapshotBody>();
    for (const [cluster, snapshot] of next.clusters) {
      const json = Buffer.from(JSON.stringify(snapshot));
      const sha256 = createHash("sha256").update(json).digest("hex");
      bodies.set(cluster, { tag: snapshotTag(next), json, gzipped: await zip(json), sha256 });
    }
    this.#current = next;
    this.#bodies = bodies;
    this.#shares = sharesOf(next);
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls `listener` after each replacement; returns the way to stop. */
  onReplace(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

function sharesOf({ clusters }: StoredPublication): Shares {
  const shares = new Map<string, Record<string, Record<string, number>>>();
  for (const [cluster, { cells }] of clusters) {
    for (const cell of cells) {
      for (const [index, share] of cellShares(cell).entries()) {
        const byCluster = shares.get(cell.engines[index]!) ?? {};
        byCluster[cluster] = { ...byCluster[cluster], [cell.class]: share };
        shares.set(cell.engines[index]!, byCluster);
      }
    }
  }
  return shares;
}

/** What the ring gives, exact to one slot; the weights where there is no ring. */
function cellShares(cell: SnapshotCell): number[] {
  const owners = decodeRing(cell);
  if (owners.length === 0) return cell.weights;
  const slots = cell.engines.map(() => 0);
  for (const owner of owners) slots[owner]! += 1;
  return slots.map((count) => count / owners.length);
}

import { decodeRing, type Publication } from "@guidevane/core";

/** Fraction of all requests whose key changed its home between two publications; null where nothing can be compared. */
export function keysMoved(before: Pick<Publication, "clusters">, after: Pick<Publication, "clusters">): number | null {
  let demandRps = 0;
  let movedRps = 0;
  for (const [cluster, { cells }] of after.clusters) {
    for (const cell of cells) {
      const old = before.clusters.get(cluster)?.cells.find((each) => each.class === cell.class);
      if (old === undefined) continue;
      const was = decodeRing(old);
      const is = decodeRing(cell);
      if (was.length !== is.length || is.length === 0) continue;
      let moved = 0;
      for (let slot = 0; slot < is.length; slot++) {
        if (old.engines[was[slot]!] !== cell.engines[is[slot]!]) moved++;
      }
      demandRps += cell.demandRps;
      movedRps += (cell.demandRps * moved) / is.length;
    }
  }
  return demandRps > 0 ? movedRps / demandRps : null;
}

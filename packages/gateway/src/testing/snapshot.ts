import { type ClusterSnapshot, encodeRing, type Fleet } from "@guidevane/core";
import { bootstrapSnapshot, buildRing } from "@guidevane/selector";

/** A published snapshot of the fleet's cluster: bootstrap's engines and classes, with these weights, a ring, and the rest as reserves. */
export function snapshotOf(
  fleet: Fleet,
  stamp: { version: number; epoch?: number },
  weights: Readonly<Record<string, number>>,
  shed = 0,
): ClusterSnapshot {
  const base = bootstrapSnapshot(fleet, "east", 1_700_000_000_000);
  const cells = base.cells.map((cell) => {
    const own = cell.engines.map((id) => weights[id] ?? 0);
    const { owners } = buildRing(cell.engines, own, 256);
    const reserves = cell.engines
      .filter((_, i) => own[i] === 0)
      .map((engine) => ({ engine, spareWps: 10, reducedCostMs: 1 }));
    return { ...cell, weights: own, shed, reserves, ring: encodeRing(owners, cell.engines.length) };
  });
  return { ...base, epoch: 1, ...stamp, cells };
}

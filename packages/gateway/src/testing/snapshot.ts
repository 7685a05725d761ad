import { type ClusterSnapshot, type Fleet, encodeRing } from "@guidevane/core";
import { bootstrapSnapshot, buildRing } from "@guidevane/selector";

/** A published snapshot of the fleet's cluster: bootstrap's engines and classes, with these weights and a ring. */
export function snapshotOf(
  fleet: Fleet,
  stamp: { version: number; epoch?: number },
  weights: Readonly<Record<string, number>>,
  shed = 0,
): ClusterSnapshot {
  const base = bootstrapSnapshot(fleet, "east", 1_700_000_000_000);
  const cells = base.cells.map((cell) => {
    const own = cell.engines.map((id) => weights[id] ?? 0);
    const { owners } = buildRing(own, 256);
    return { ...cell, weights: own, shed, ring: encodeRing(owners, cell.engines.length) };
  });
  return { ...base, epoch: 1, ...stamp, cells };
}

import { type ClusterSnapshot, type SnapshotCell, STREAM_LIMIT_FACTOR } from "@guidevane/core";
import type { AdmissionClass } from "./occupancy.ts";

/** One gateway's part of a hard limit. Where there are more gateways than streams each may have one. */
export function partOf(limit: number, gateways: number): number {
  return Math.max(1, Math.floor(limit / gateways));
}

/** Limits of the snapshot's cells for one of so many gateways. */
export function admissionClasses(snapshot: ClusterSnapshot, gateways: number): AdmissionClass[] {
  return snapshot.cells.map((cell) => {
    const { model, priority } = snapshot.classes[cell.class]!;
    return {
      name: cell.class,
      model,
      priority,
      work: cell.work,
      // A gateway whose part is less than one stream would serve nobody.
      streamLimit: Math.max(1, cell.streamLimit / gateways),
      streamWps: streamWps(cell, snapshot),
      engineLimit: engineLimit(cell, snapshot, gateways),
    };
  });
}

/**
 * Work units/s of one stream at full load. The limit is 1.25 × full rate × time, and the full rate is the sum over engines
 * of demand × weight ÷ utilisation; where that says nothing (a silent class, no plan) the planned time is taken.
 */
function streamWps(
  { engines, weights, expectedMs, demandRps, shed, work, streamLimit }: SnapshotCell,
  snapshot: ClusterSnapshot,
): number {
  let fullRps = 0;
  let meanMs = 0;
  for (const [at, id] of engines.entries()) {
    const { loadWps, capacityWps } = snapshot.engines[id]!;
    meanMs += weights[at]! * expectedMs[at]!;
    if (loadWps > 0) fullRps += (demandRps * (1 - shed) * weights[at]! * capacityWps) / loadWps;
  }
  const plannedWps = (work * 1000) / Math.max(meanMs, 1);
  const fullWps = (work * fullRps * STREAM_LIMIT_FACTOR) / streamLimit;
  return fullWps > plannedWps / SLOWEST && fullWps < plannedWps ? fullWps : plannedWps;
}

/** At full load a request takes longer than planned, but not so many times as long: such a figure is a silent class's. */
const SLOWEST = 10;

function engineLimit({ engines, reserves }: SnapshotCell, snapshot: ClusterSnapshot, gateways: number): number {
  let sum = 0;
  for (const id of [...engines, ...reserves.map(({ engine }) => engine)]) {
    const most = snapshot.engines[id]!.maxStreams;
    if (most === undefined) return Number.POSITIVE_INFINITY;
    sum += partOf(most, gateways);
  }
  return sum;
}

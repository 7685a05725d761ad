import {
  type ClusterSnapshot,
  type PlanColumns,
  planColumns,
  type SnapshotCell,
  STREAM_LIMIT_FACTOR,
} from "@guidevane/core";
import type { AdmissionClass } from "./occupancy.ts";

/** One gateway's part of a hard limit. Where there are more gateways than streams each may have one. */
export function partOf(limit: number, gateways: number): number {
  return Math.max(1, Math.floor(limit / gateways));
}

/** Limits of the snapshot's cells for one of so many gateways. */
export function admissionClasses(snapshot: ClusterSnapshot, gateways: number): AdmissionClass[] {
  const columns = planColumns(snapshot);
  return snapshot.cells.map((cell, at) => {
    const { model, priority } = snapshot.classes[cell.class]!;
    return {
      name: cell.class,
      model,
      priority,
      work: cell.work,
      // A gateway whose part is less than one stream would serve nobody.
      streamLimit: Math.max(1, cell.streamLimit / gateways),
      streamWps: streamWps(cell, at, columns),
      engineLimit: engineLimit(cell, at, snapshot, gateways),
    };
  });
}

/**
 * Work units/s of one stream at full load. The limit is 1.25 × full rate × time, and the full rate is the sum over engines
 * of demand × weight ÷ utilisation; where that says nothing (a silent class, no plan) the planned time is taken.
 */
function streamWps(
  { demandRps, shed, work, streamLimit }: SnapshotCell,
  cell: number,
  { pairAt, pairEngine, weights, expectedMs, loadWps, capacityWps }: PlanColumns,
): number {
  let fullRps = 0;
  let meanMs = 0;
  for (let pair = pairAt[cell]!; pair < pairAt[cell + 1]!; pair++) {
    const engine = pairEngine[pair]!;
    const weight = weights[pair]!;
    meanMs += weight * expectedMs[pair]!;
    if (loadWps[engine]! > 0) fullRps += (demandRps * (1 - shed) * weight * capacityWps[engine]!) / loadWps[engine]!;
  }
  const plannedWps = (work * 1000) / Math.max(meanMs, 1);
  const fullWps = (work * fullRps * STREAM_LIMIT_FACTOR) / streamLimit;
  return fullWps > plannedWps / SLOWEST && fullWps < plannedWps ? fullWps : plannedWps;
}

/** At full load a request takes longer than planned, but not so many times as long: such a figure is a silent class's. */
const SLOWEST = 10;

/** Most classes have an engine without a limit: of those no more is read. */
function engineLimit(of: SnapshotCell, cell: number, snapshot: ClusterSnapshot, gateways: number): number {
  const { pairAt, pairEngine, maxStreams } = planColumns(snapshot);
  let sum = 0;
  for (let pair = pairAt[cell]!; pair < pairAt[cell + 1]!; pair++) {
    const most = maxStreams[pairEngine[pair]!]!;
    if (Number.isNaN(most)) return Number.POSITIVE_INFINITY;
    sum += partOf(most, gateways);
  }
  for (const { engine } of of.reserves) {
    const most = snapshot.engines[engine]!.maxStreams;
    if (most === undefined) return Number.POSITIVE_INFINITY;
    sum += partOf(most, gateways);
  }
  return sum;
}

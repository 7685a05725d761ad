import {
  type ClassSpec,
  type ClusterSpec,
  type Fleet,
  ineligibleFor,
  rttMsOf,
  type StoredPublication,
} from "@guidevane/core";
import { cellKey } from "@guidevane/optimizer";
import { DEMAND_FLOOR_RPS, type DemandLevels } from "@guidevane/signals";

/** Where the demand of a cell comes from, best first. */
export type DemandSource = "reported" | "stored" | "fleet" | "assumed";

export interface CellDemand {
  readonly rps: number;
  readonly source: DemandSource;
}

/** Part of a model's capacity that is assumed to be asked for when nothing says otherwise. */
const ASSUMED_LOAD = 0.5;

/**
 * Demand of every cell, by `cellKey`: what the cluster's gateways report; until they do the last published; else the
 * fleet file's `demandRps`; else equal parts, in work, of half the model's capacity over its cells.
 */
export function demandOf(
  fleet: Fleet,
  levels: DemandLevels,
  stored: StoredPublication | null,
  nowMs: number,
): Map<string, CellDemand> {
  const demand = new Map<string, CellDemand>();
  const assumed = assumedDemand(fleet);
  for (const cluster of fleet.clusters.values()) {
    const reported = levels.of(cluster.name, nowMs);
    const last = new Map(stored?.clusters.get(cluster.name)?.cells.map((cell) => [cell.class, cell.demandRps]));
    for (const spec of fleet.classes.values()) {
      const key = cellKey(cluster.name, spec.name);
      demand.set(key, cellDemand(reported?.get(spec.name)?.offeredRps, reported !== null, last, cluster, spec));
    }
  }
  return demand;

  function cellDemand(
    reportedRps: number | undefined,
    hasReported: boolean,
    last: ReadonlyMap<string, number>,
    cluster: ClusterSpec,
    spec: ClassSpec,
  ): CellDemand {
    if (hasReported) return { rps: Math.max(DEMAND_FLOOR_RPS, reportedRps ?? 0), source: "reported" };
    const lastRps = last.get(spec.name);
    if (lastRps !== undefined) return { rps: Math.max(DEMAND_FLOOR_RPS, lastRps), source: "stored" };
    const fileRps = fleet.demandRps.get(cluster.name)?.get(spec.name);
    if (fileRps !== undefined) return { rps: Math.max(DEMAND_FLOOR_RPS, fileRps), source: "fleet" };
    const rps = assumed.get(cellKey(cluster.name, spec.name)) ?? 0;
    return { rps: Math.max(DEMAND_FLOOR_RPS, rps), source: "assumed" };
  }
}

/** An engine of several models counts for each in equal part; a model with demand in the fleet file assumes nothing. */
function assumedDemand(fleet: Fleet): Map<string, number> {
  const named = new Set(
    [...fleet.demandRps.values()].flatMap((byClass) =>
      [...byClass.keys()].map((name) => fleet.classes.get(name)?.model),
    ),
  );
  const cells = new Map<string, { key: string; work: number }[]>();
  for (const cluster of fleet.clusters.values()) {
    for (const spec of fleet.classes.values()) {
      const served = [...fleet.engines.values()].some(
        (engine) => ineligibleFor(spec, engine, rttMsOf(fleet, cluster, engine)) === null,
      );
      if (named.has(spec.model) || !served) continue;
      const list = cells.get(spec.model) ?? [];
      list.push({ key: cellKey(cluster.name, spec.name), work: spec.work });
      cells.set(spec.model, list);
    }
  }
  const demand = new Map<string, number>();
  for (const [model, list] of cells) {
    let capacityWps = 0;
    for (const engine of fleet.engines.values()) {
      if (engine.models.includes(model)) capacityWps += (engine.capacityWps * engine.replicas) / engine.models.length;
    }
    for (const { key, work } of list) demand.set(key, (ASSUMED_LOAD * capacityWps) / list.length / work);
  }
  return demand;
}

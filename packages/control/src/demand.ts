import {
  type ClassSpec,
  type ClusterSpec,
  DEMAND_FLOOR_RPS,
  type Fleet,
  ineligibleFor,
  rttMsOf,
  type StoredPublication,
} from "@guidevane/core";
import { cellKey } from "@guidevane/optimizer";
import type { DemandLevel, DemandLevels } from "@guidevane/signals";

/** Where the demand of a cell comes from, best first. */
export type DemandSource = "reported" | "stored" | "fleet" | "assumed";

export interface CellDemand {
  readonly rps: number;
  /** One deviation of it by chance; 0 where it was not measured. */
  readonly deviationRps: number;
  readonly source: DemandSource;
}

/**
 * Until a cluster's level is a mean of this much traffic, what was known before it counts as well: a few seconds of
 * Poisson arrivals at 40 requests/s stand 10 % off as often as not, enough to shed from a fleet that has room.
 */
const SETTLE_MS = 30_000;
/** A rise beyond this many deviations of chance is believed at once. */
const DEVIATIONS = 3;

/** Part of a model's capacity that is assumed to be asked for when nothing says otherwise. */
const ASSUMED_LOAD = 0.5;

/**
 * Demand of every cell, by `cellKey`: what the cluster's gateways report, for a while held to what was known before (see
 * `settled`); until they do the last published; else the
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
      demand.set(key, cellDemand(reported?.get(spec.name), reported !== null, last, cluster, spec));
    }
  }
  return demand;

  function cellDemand(
    level: DemandLevel | undefined,
    hasReported: boolean,
    last: ReadonlyMap<string, number>,
    cluster: ClusterSpec,
    spec: ClassSpec,
  ): CellDemand {
    const lastRps = last.get(spec.name);
    if (hasReported) {
      const priorRps = lastRps ?? fleet.demandRps.get(cluster.name)?.get(spec.name);
      const rps = level === undefined ? 0 : settled(level, priorRps);
      return { rps: Math.max(DEMAND_FLOOR_RPS, rps), deviationRps: level?.deviationRps ?? 0, source: "reported" };
    }
    if (lastRps !== undefined) return { rps: Math.max(DEMAND_FLOOR_RPS, lastRps), deviationRps: 0, source: "stored" };
    const fileRps = fleet.demandRps.get(cluster.name)?.get(spec.name);
    if (fileRps !== undefined) return { rps: Math.max(DEMAND_FLOOR_RPS, fileRps), deviationRps: 0, source: "fleet" };
    const rps = assumed.get(cellKey(cluster.name, spec.name)) ?? 0;
    return { rps: Math.max(DEMAND_FLOOR_RPS, rps), deviationRps: 0, source: "assumed" };
  }
}

/** The level; while it is young, drawn towards what was known before, unless it stands above that beyond chance. */
function settled({ offeredRps, overMs, ageMs }: DemandLevel, priorRps: number | undefined): number {
  if (priorRps === undefined || overMs >= SETTLE_MS || ageMs >= SETTLE_MS) return offeredRps;
  const chanceRps = DEVIATIONS * Math.sqrt(Math.max(priorRps, DEMAND_FLOOR_RPS) / (Math.max(overMs, 1) / 1000));
  if (offeredRps > priorRps + chanceRps) return offeredRps;
  return priorRps + (offeredRps - priorRps) * (overMs / SETTLE_MS);
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

import {
  type ClassSpec,
  type ClusterSpec,
  type EngineSpec,
  type Fleet,
  GuidevaneError,
  ineligibleFor,
  type Profile,
  profileOf,
  rttMsOf,
} from "@guidevane/core";
import type { Workload } from "./workload.ts";

/** A fleet as numbers: clusters, classes and engines by their place, in file order. A cell is class · clusters + cluster. */
export interface LabFleet {
  readonly fleet: Fleet;
  readonly clusters: readonly ClusterSpec[];
  readonly classes: readonly ClassSpec[];
  readonly engines: readonly EngineSpec[];
  readonly profiles: readonly Profile[];
  /** Round trip by cluster · engines + engine, ms. */
  readonly rttMs: Float64Array;
  /** Engines that may serve a cell, by cell. */
  readonly eligible: readonly Uint16Array[];
  /** Work units/s of all replicas, by engine. */
  readonly capacityWps: Float64Array;
}

export function labFleet(fleet: Fleet): LabFleet {
  const clusters = [...fleet.clusters.values()];
  const classes = [...fleet.classes.values()];
  const engines = [...fleet.engines.values()];
  const rttMs = new Float64Array(clusters.length * engines.length);
  for (const [c, cluster] of clusters.entries()) {
    for (const [e, engine] of engines.entries()) rttMs[c * engines.length + e] = rttMsOf(fleet, cluster, engine);
  }
  const eligible = classes.flatMap((spec) =>
    clusters.map((_, c) =>
      Uint16Array.from(
        engines.flatMap((engine, e) =>
          engine.adminState === "active" && ineligibleFor(spec, engine, rttMs[c * engines.length + e]!) === null
            ? [e]
            : [],
        ),
      ),
    ),
  );
  return {
    fleet,
    clusters,
    classes,
    engines,
    profiles: engines.map((engine) => profileOf(fleet, engine)),
    rttMs,
    eligible,
    capacityWps: Float64Array.from(engines, ({ capacityWps, replicas }) => capacityWps * replicas),
  };
}

/**
 * Places of a workload's clusters and classes in the fleet.
 *
 * @throws GuidevaneError `bad_trace` where the fleet does not have one
 */
export function placesOf(workload: Workload, { clusters, classes }: LabFleet): { cluster: number[]; class: number[] } {
  const place = (kind: string, name: string, names: readonly string[]): number => {
    const at = names.indexOf(name);
    if (at >= 0) return at;
    throw new GuidevaneError("bad_trace", `${workload.name}: the fleet has no ${kind} ${name}; it has ${names}`);
  };
  return {
    cluster: workload.clusters.map((name) =>
      place(
        "cluster",
        name,
        clusters.map((each) => each.name),
      ),
    ),
    class: workload.classes.map((name) =>
      place(
        "class",
        name,
        classes.map((each) => each.name),
      ),
    ),
  };
}

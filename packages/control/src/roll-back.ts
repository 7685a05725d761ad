import {
  type AdminState,
  type ClusterSnapshot,
  type EngineSpec,
  engineDefinition,
  type Fleet,
  ineligibleFor,
  type Publication,
  rttMsOf,
  type SnapshotEngine,
  type StoredPublication,
} from "@guidevane/core";

/** An older publication as it may be published today, or what is against it, a sentence each. */
export type RolledBack =
  | { readonly ok: true; readonly publication: Publication }
  | { readonly ok: false; readonly why: readonly string[] };

/** What is so today, whatever the publication said. */
export interface Present {
  readonly adminState: (engine: EngineSpec) => AdminState;
  readonly liveGateways: (cluster: string) => number;
  readonly wallMs: number;
}

/**
 * Weights, rings and figures of an older publication with the engines' definitions of today's fleet file: what an engine is
 * reached by may have changed since, what it was planned with has not.
 */
export function rolledBack(
  old: StoredPublication,
  fleet: Fleet,
  { adminState, liveGateways, wallMs }: Present,
): RolledBack {
  const why: string[] = [];
  const madeAt = new Date(wallMs).toISOString();
  for (const name of fleet.clusters.keys())
    if (!old.clusters.has(name)) why.push(`cluster ${name} is not in version ${old.version}`);
  const clusters = new Map<string, ClusterSnapshot>();
  for (const [name, snapshot] of old.clusters) {
    if (!fleet.clusters.has(name)) {
      why.push(`cluster ${name} is not in the fleet any more`);
      continue;
    }
    why.push(...cellFaults(snapshot, fleet));
    clusters.set(name, {
      ...snapshot,
      madeAt,
      gateways: liveGateways(name),
      engines: presentEngines(snapshot, fleet, adminState),
      // The weights are there by the rolling back now, and a pin of then may have ended.
      cells: snapshot.cells.map(({ pin: _pin, ...cell }) => cell),
    });
  }
  if (why.length > 0) return { ok: false, why };
  const because = `an operator rolled back to version ${old.version}`;
  return { ok: true, publication: { clusters, problem: old.problem, why: because } };
}

function cellFaults(snapshot: ClusterSnapshot, fleet: Fleet): string[] {
  const cluster = fleet.clusters.get(snapshot.cluster)!;
  const why: string[] = [];
  const classes = new Set(snapshot.cells.map((cell) => cell.class));
  for (const name of fleet.classes.keys())
    if (!classes.has(name) && !Object.hasOwn(snapshot.classes, name))
      why.push(`class ${name} is not in it for ${cluster.name}`);
  for (const cell of snapshot.cells) {
    const spec = fleet.classes.get(cell.class);
    if (spec === undefined) {
      why.push(`class ${cell.class} is not in the fleet any more`);
      continue;
    }
    for (const id of [...cell.engines, ...cell.reserves.map(({ engine }) => engine)]) {
      const engine = fleet.engines.get(id);
      const ineligible = engine === undefined ? null : ineligibleFor(spec, engine, rttMsOf(fleet, cluster, engine));
      if (engine === undefined) why.push(`engine ${id} is not in the fleet any more`);
      else if (ineligible !== null) why.push(`engine ${id} may not serve ${cell.class}: it ${ineligible.message}`);
    }
  }
  return [...new Set(why)];
}

function presentEngines(
  snapshot: ClusterSnapshot,
  fleet: Fleet,
  adminState: (engine: EngineSpec) => AdminState,
): Record<string, SnapshotEngine> {
  const engines: Record<string, SnapshotEngine> = {};
  for (const [id, planned] of Object.entries(snapshot.engines)) {
    const present = fleet.engines.get(id);
    // An engine that no cell names any more: nothing is sent to it, and the problem still has its figures.
    if (present === undefined) {
      engines[id] = { ...planned, adminState: "out" };
      continue;
    }
    engines[id] = { ...planned, ...engineDefinition(present), adminState: adminState(present) };
  }
  return engines;
}

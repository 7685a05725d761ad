import {
  type ClassSpec,
  type ClusterSnapshot,
  type ClusterSpec,
  classDefinition,
  type EngineSpec,
  engineDefinition,
  type Fleet,
  GuidevaneError,
  idleMs,
  ineligibleFor,
  type Knots,
  latencyDefinition,
  profileOf,
  rttMsOf,
  type SnapshotCell,
  type SnapshotEngine,
  STREAM_LIMIT_FACTOR,
  valueAt,
} from "@guidevane/core";

/**
 * What a gateway routes by before anything was published and with nothing on disk: version 0, weights ∝ capacity ÷ (RTT +
 * unloaded TTFT), no rings, so that keys spread by weighted rendezvous alone.
 *
 * @param wallMs when, for the stamp
 * @throws GuidevaneError `bad_fleet` when the fleet has no such cluster
 */
export function bootstrapSnapshot(fleet: Fleet, clusterName: string, wallMs = 0): ClusterSnapshot {
  const cluster = fleet.clusters.get(clusterName);
  if (cluster === undefined)
    throw new GuidevaneError(
      "bad_fleet",
      `the fleet has no cluster ${clusterName}; it has ${[...fleet.clusters.keys()]}`,
    );
  const engines = [...fleet.engines.values()];
  const bound = { objectiveMs: 0, lowerBoundMs: 0, gapMs: 0, gap: 0 };
  return {
    version: 0,
    epoch: 0,
    madeAt: new Date(wallMs).toISOString(),
    cluster: clusterName,
    gateways: 1,
    engines: Object.fromEntries(engines.map((engine) => [engine.id, unplanned(fleet, cluster, engine)])),
    classes: Object.fromEntries([...fleet.classes.values()].map((spec) => [spec.name, classDefinition(spec)])),
    aliases: Object.fromEntries(fleet.aliases),
    cells: [...fleet.classes.values()].flatMap((spec) => bootstrapCell(fleet, cluster, spec, engines) ?? []),
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 0 },
  };
}

function unplanned(fleet: Fleet, cluster: ClusterSpec, engine: EngineSpec): SnapshotEngine {
  return {
    ...engineDefinition(engine),
    latency: latencyDefinition(profileOf(fleet, engine)),
    rttMs: rttMsOf(fleet, cluster, engine),
    plannedFactor: 1,
    plannedReady: engine.replicas,
    loadWps: 0,
    capacityWps: engine.capacityWps * engine.replicas,
    priceMs: 0,
    worthMs: 0,
  };
}

/** Null where no engine may serve the class from here: such a cell is left out. */
function bootstrapCell(
  fleet: Fleet,
  cluster: ClusterSpec,
  spec: ClassSpec,
  all: readonly EngineSpec[],
): SnapshotCell | null {
  const engines = all.filter(
    (engine) => engine.adminState === "active" && ineligibleFor(spec, engine, rttMsOf(fleet, cluster, engine)) === null,
  );
  if (engines.length === 0) return null;
  const idle = engines.map((engine) => {
    const capacityWps = engine.capacityWps * engine.replicas;
    const profile = profileOf(fleet, engine);
    const rttMs = rttMsOf(fleet, cluster, engine);
    const serviceMs = idleMs(profile, spec);
    // An engine on this host with a profile that starts at 0 would else weigh infinitely.
    const pull = capacityWps / Math.max(rttMs + valueAt(profile.ttftMs, 0), LEAST_MS);
    const slowerMs = (curve: Knots): number => valueAt(curve, BUSY) - valueAt(curve, 0);
    const busyMs = rttMs + serviceMs + slowerMs(profile.ttftMs) + spec.outputTokens * slowerMs(profile.tbotMs);
    const streams = (capacityWps / spec.work) * (busyMs / 1000);
    return { rttMs, serviceMs, pull, streams };
  });
  const allPull = idle.reduce((total, { pull }) => total + pull, 0);
  return {
    cluster: cluster.name,
    class: spec.name,
    demandRps: fleet.demandRps.get(cluster.name)?.get(spec.name) ?? 0,
    work: spec.work,
    engines: engines.map(({ id }) => id),
    weights: idle.map(({ pull }) => pull / allPull),
    expectedMs: idle.map(({ rttMs, serviceMs }) => rttMs + serviceMs),
    addends: idle.map(({ rttMs, serviceMs }) => [rttMs, serviceMs, 0, 0, 0]),
    reserves: [],
    shed: 0,
    priceMs: 0,
    streamLimit: STREAM_LIMIT_FACTOR * idle.reduce((total, { streams }) => total + streams, 0),
    ring: "",
  };
}

const LEAST_MS = 1;
/** Utilisation at which a plan counts the streams that an engine holds. */
const BUSY = 0.95;

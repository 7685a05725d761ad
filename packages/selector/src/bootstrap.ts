import {
  type ClassSpec,
  type ClusterSnapshot,
  type ClusterSpec,
  type EngineSpec,
  type Fleet,
  GuidevaneError,
  ineligibleFor,
  profileOf,
  rttMsOf,
  type SnapshotCell,
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
    engines: Object.fromEntries(engines.map((engine) => [engine.id, definition(fleet, cluster, engine)])),
    classes: Object.fromEntries(
      [...fleet.classes.values()].map(({ name, ...spec }) => [
        name,
        {
          model: spec.model,
          priority: spec.priority,
          work: spec.work,
          promptTokens: spec.promptTokens,
          outputTokens: spec.outputTokens,
          firstTokenMs: spec.firstTokenMs,
          needs: {
            capabilities: [...spec.needs.capabilities],
            residency: [...spec.needs.residency],
            compute: [...spec.needs.compute],
            contextTokens: spec.needs.contextTokens,
            networkMs: spec.needs.networkMs,
          },
        },
      ]),
    ),
    cells: [...fleet.classes.values()].flatMap((spec) => bootstrapCell(fleet, cluster, spec, engines) ?? []),
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 0 },
  };
}

function definition(fleet: Fleet, cluster: ClusterSpec, engine: EngineSpec): ClusterSnapshot["engines"][string] {
  return {
    url: engine.url,
    kind: engine.kind,
    region: engine.region,
    models: [...engine.models],
    capabilities: engine.capabilities === null ? null : [...engine.capabilities],
    residency: engine.residency,
    compute: engine.compute,
    maxContextTokens: engine.maxContextTokens,
    replicas: engine.replicas,
    adminState: engine.adminState,
    health: { ...engine.health },
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
  const raw = engines.map((engine) => {
    const rttMs = rttMsOf(fleet, cluster, engine);
    const { ttftMs } = profileOf(fleet, engine);
    // An engine on this host with a profile that starts at 0 would else weigh infinitely.
    return (engine.capacityWps * engine.replicas) / Math.max(rttMs + (ttftMs[0]?.[1] ?? 0), LEAST_MS);
  });
  const sum = raw.reduce((total, weight) => total + weight, 0);
  const serviceMs = engines.map((engine) => unloadedMs(fleet, engine, spec));
  const rttMs = engines.map((engine) => rttMsOf(fleet, cluster, engine));
  const expectedMs = engines.map((_, i) => rttMs[i]! + serviceMs[i]!);
  const streams = engines.map(
    (engine, i) => ((engine.capacityWps * engine.replicas) / spec.work) * (expectedMs[i]! / 1000),
  );
  return {
    cluster: cluster.name,
    class: spec.name,
    demandRps: fleet.demandRps.get(cluster.name)?.get(spec.name) ?? 0,
    work: spec.work,
    engines: engines.map(({ id }) => id),
    weights: raw.map((weight) => weight / sum),
    expectedMs,
    addends: engines.map((_, i) => [rttMs[i]!, serviceMs[i]!, 0, 0, 0]),
    reserves: [],
    shed: 0,
    priceMs: 0,
    streamLimit: STREAM_MARGIN * streams.reduce((total, each) => total + each, 0),
    ring: "",
  };
}

const LEAST_MS = 1;
/** As the plan's own limit: a quarter more than the engines hold. */
const STREAM_MARGIN = 1.25;

/** TTFT and decode of a request of the class at an idle engine. */
function unloadedMs(fleet: Fleet, engine: EngineSpec, spec: ClassSpec): number {
  const profile = profileOf(fleet, engine);
  const extraPromptTokens = spec.promptTokens - profile.reference.promptTokens;
  const ttftMs = Math.max(0, (profile.ttftMs[0]?.[1] ?? 0) + profile.prefillMsPerTok * extraPromptTokens);
  return ttftMs + spec.outputTokens * (profile.tbotMs[0]?.[1] ?? 0);
}

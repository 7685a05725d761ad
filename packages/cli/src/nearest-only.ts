import { type Fleet, ineligibleFor, profileOf, rttMsOf, valueAt } from "@guidevane/core";

/** Every request to its nearest engine: what routing by distance alone would give. */
export interface NearestOnly {
  /** Mean latency, ms per request; null when some engine would be beyond its capacity, where no steady mean exists. */
  readonly meanMs: number | null;
  /** Engines beyond their capacity, worst first. */
  readonly overloaded: readonly { readonly engine: string; readonly utilisation: number }[];
}

/** By the fleet's twin: TTFT and TBOT curves at the load that the given demand (by cluster, then class) would make. */
export function nearestOnly(fleet: Fleet, demandRps: Fleet["demandRps"]): NearestOnly {
  const loadWps = new Map<string, number>();
  const flows: { engine: string; requestClass: string; rateRps: number; rttMs: number }[] = [];
  for (const [clusterName, byClass] of demandRps) {
    const cluster = fleet.clusters.get(clusterName)!;
    for (const [requestClass, rateRps] of byClass) {
      const spec = fleet.classes.get(requestClass)!;
      const [nearest] = [...fleet.engines.values()]
        .map((engine) => ({ engine, rttMs: rttMsOf(fleet, cluster, engine) }))
        .filter(({ engine, rttMs }) => engine.adminState === "active" && ineligibleFor(spec, engine, rttMs) === null)
        .sort((a, b) => a.rttMs - b.rttMs);
      if (nearest === undefined) continue;
      const { id } = nearest.engine;
      flows.push({ engine: id, requestClass, rateRps, rttMs: nearest.rttMs });
      loadWps.set(id, (loadWps.get(id) ?? 0) + rateRps * spec.work);
    }
  }
  const utilisation = new Map(
    [...loadWps].map(([id, load]) => {
      const engine = fleet.engines.get(id)!;
      return [id, load / (engine.capacityWps * engine.replicas)] as const;
    }),
  );
  const overloaded = [...utilisation]
    .filter(([, rho]) => rho > 1)
    .map(([engine, rho]) => ({ engine, utilisation: rho }))
    .sort((a, b) => b.utilisation - a.utilisation);
  let latencyMs = 0;
  let rateRps = 0;
  for (const flow of flows) {
    const profile = profileOf(fleet, fleet.engines.get(flow.engine)!);
    const spec = fleet.classes.get(flow.requestClass)!;
    const rho = utilisation.get(flow.engine)!;
    const prefillMs = profile.prefillMsPerTok * (spec.promptTokens - profile.reference.promptTokens);
    const ttftMs = Math.max(0, valueAt(profile.ttftMs, rho) + prefillMs);
    latencyMs += flow.rateRps * (flow.rttMs + ttftMs + spec.outputTokens * valueAt(profile.tbotMs, rho));
    rateRps += flow.rateRps;
  }
  return { meanMs: overloaded.length > 0 || rateRps === 0 ? null : latencyMs / rateRps, overloaded };
}

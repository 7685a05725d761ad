import type { ClassSpec, EngineSpec } from "./fleet.ts";
import type { Profile } from "./profile.ts";
import type { EngineLatency, SnapshotClass, SnapshotEngine } from "./snapshot.ts";

/** What a snapshot says of an engine by the fleet file alone: no credentials, and nothing of the plan's. */
export type EngineDefinition = Omit<
  SnapshotEngine,
  "latency" | "rttMs" | "plannedFactor" | "plannedReady" | "loadWps" | "capacityWps" | "priceMs" | "worthMs"
>;

export function engineDefinition(spec: EngineSpec): EngineDefinition {
  const { url, kind, region, models, capabilities, residency, compute, maxContextTokens, replicas, health } = spec;
  const { maxStreams } = spec;
  return {
    url,
    kind,
    region,
    models: [...models],
    capabilities: capabilities === null ? null : [...capabilities],
    residency,
    compute,
    maxContextTokens,
    ...(maxStreams === null ? {} : { maxStreams }),
    replicas,
    adminState: spec.adminState,
    health: { ...health },
  };
}

/** What a gateway measures an engine's times against. */
export function latencyDefinition({ ttftMs, tbotMs, prefillMsPerTok, reference }: Profile): EngineLatency {
  const own = (knots: Profile["ttftMs"]): [number, number][] => knots.map(([utilisation, ms]) => [utilisation, ms]);
  return { ttftMs: own(ttftMs), tbotMs: own(tbotMs), prefillMsPerTok, promptTokens: reference.promptTokens };
}

/** What a snapshot says of a class, under its name. */
export function classDefinition(spec: ClassSpec): SnapshotClass {
  const { model, priority, work, promptTokens, outputTokens, firstTokenMs, needs } = spec;
  return {
    model,
    priority,
    work,
    promptTokens,
    outputTokens,
    firstTokenMs,
    needs: {
      ...needs,
      capabilities: [...needs.capabilities],
      residency: [...needs.residency],
      compute: [...needs.compute],
    },
  };
}

import type { ClassSpec, EngineSpec } from "./fleet.ts";
import type { SnapshotClass, SnapshotEngine } from "./snapshot.ts";

/** What a snapshot says of an engine by the fleet file alone: no credentials, and nothing of the plan's. */
export type EngineDefinition = Omit<
  SnapshotEngine,
  "rttMs" | "plannedFactor" | "plannedReady" | "loadWps" | "capacityWps" | "priceMs" | "worthMs"
>;

export function engineDefinition(spec: EngineSpec): EngineDefinition {
  const { url, kind, region, models, capabilities, residency, compute, maxContextTokens, replicas, health } = spec;
  return {
    url,
    kind,
    region,
    models: [...models],
    capabilities: capabilities === null ? null : [...capabilities],
    residency,
    compute,
    maxContextTokens,
    replicas,
    adminState: spec.adminState,
    health: { ...health },
  };
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

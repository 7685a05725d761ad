import type { ClusterSnapshot, SnapshotCell, SnapshotEngine } from "@guidevane/core";

/** An engine with this planned load and capacity. */
export function engineOf(loadWps: number, capacityWps: number): SnapshotEngine {
  return {
    ...{ url: "http://e", kind: "vllm", region: "here", models: ["m"], capabilities: null, residency: null },
    ...{ compute: null, maxContextTokens: null, replicas: 1, adminState: "active", rttMs: 0 },
    health: { path: null, pathIsDefault: true, port: null, intervalMs: 2000 },
    ...{ plannedFactor: 1, plannedReady: 1, loadWps, capacityWps, priceMs: 0, worthMs: 0 },
  };
}

/** A cell with these weights by engine id. */
export function cellOf(name: string, demandRps: number, weights: Readonly<Record<string, number>>): SnapshotCell {
  const engines = Object.keys(weights);
  return {
    ...{ cluster: "east", class: name, demandRps, work: 1, engines, weights: Object.values(weights) },
    expectedMs: engines.map(() => 1000),
    addends: engines.map(() => [0, 1000, 0, 0, 0]),
    ...{ reserves: [], shed: 0, priceMs: 0, streamLimit: 100, ring: "" },
  };
}

/** A snapshot of these cells, each class of a model of its own unless `models` says otherwise. */
export function snapshotOf(
  engines: Readonly<Record<string, SnapshotEngine>>,
  cells: readonly SnapshotCell[],
  more: { readonly gateways?: number; readonly models?: Readonly<Record<string, string>> } = {},
): ClusterSnapshot {
  const bound = { objectiveMs: 0, lowerBoundMs: 0, gapMs: 0, gap: 0 };
  return {
    ...{ version: 1, epoch: 1, madeAt: "2026-01-01T00:00:00.000Z", cluster: "east", gateways: more.gateways ?? 1 },
    engines: { ...engines },
    classes: Object.fromEntries(
      cells.map((cell) => [
        cell.class,
        {
          ...{ model: more.models?.[cell.class] ?? cell.class, priority: 0, work: cell.work },
          ...{ promptTokens: 512, outputTokens: 256, firstTokenMs: null },
          needs: { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null },
        },
      ]),
    ),
    cells: [...cells],
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 0 },
  };
}

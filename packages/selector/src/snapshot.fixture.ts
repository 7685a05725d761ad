import { type ClusterSnapshot, encodeRing, type SnapshotEngine } from "@guidevane/core";
import { buildRing, editRing, type Ring } from "./ring.ts";

/** One engine of a made-up snapshot. Weight 0 with spare capacity makes it a reserve. */
export interface FixtureEngine {
  readonly id: string;
  readonly weight: number;
  readonly expectedMs?: number;
  readonly spareWps?: number;
  readonly definition?: Partial<SnapshotEngine>;
}

export interface FixtureCell {
  readonly class: string;
  readonly engines: readonly FixtureEngine[];
  /** Edited instead of built anew when given. */
  readonly previous?: Ring;
}

export interface FixtureOptions {
  readonly slots?: number;
  /** No rings, version 0. */
  readonly bootstrap?: boolean;
  readonly classes?: Readonly<Record<string, Partial<ClusterSnapshot["classes"][string]>>>;
}

/** A snapshot of cluster `here` with one cell per entry; a class's model is `m-` and its name unless said otherwise. */
export function makeSnapshot(cells: readonly FixtureCell[], options: FixtureOptions = {}): ClusterSnapshot {
  const { slots = 4096, bootstrap = false, classes = {} } = options;
  const bound = { objectiveMs: 0, lowerBoundMs: 0, gapMs: 0, gap: 0 };
  const classNames = [...new Set([...Object.keys(classes), ...cells.map((cell) => cell.class)])];
  const models = (engineId: string) =>
    cells
      .filter((cell) => cell.engines.some(({ id }) => id === engineId))
      .map((cell) => classes[cell.class]?.model ?? `m-${cell.class}`);
  return {
    version: bootstrap ? 0 : 1,
    epoch: 1,
    madeAt: "2026-01-01T00:00:00.000Z",
    cluster: "here",
    gateways: 1,
    engines: Object.fromEntries(
      cells
        .flatMap((cell) => cell.engines)
        .map(({ id, definition }) => [id, { ...ENGINE, models: [...new Set(models(id))], ...definition }]),
    ),
    classes: Object.fromEntries(classNames.map((name) => [name, { ...CLASS, model: `m-${name}`, ...classes[name] }])),
    cells: cells.map((cell) => {
      const inRing = cell.engines.filter(({ weight }) => weight > 0);
      const ids = inRing.map(({ id }) => id);
      const weights = inRing.map(({ weight }) => weight);
      const ring =
        cell.previous === undefined ? buildRing(ids, weights, slots) : editRing(cell.previous, ids, weights, slots);
      const sum = weights.reduce((total, weight) => total + weight, 0);
      return {
        cluster: "here",
        class: cell.class,
        demandRps: 10,
        work: 1,
        engines: ids,
        weights: weights.map((weight) => weight / sum),
        expectedMs: inRing.map(({ expectedMs = 1000 }) => expectedMs),
        addends: inRing.map(() => [0, 0, 0, 0, 0]),
        reserves: cell.engines
          .filter(({ weight }) => weight === 0)
          .map(({ id, spareWps = 1 }) => ({ engine: id, spareWps, reducedCostMs: 1 })),
        shed: 0,
        priceMs: 0,
        streamLimit: 1000,
        ring: bootstrap ? "" : encodeRing(ring.owners, ids.length),
      };
    }),
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 0 },
  };
}

const ENGINE: SnapshotEngine = {
  url: "http://127.0.0.1:1",
  kind: "vllm",
  region: "r",
  models: [],
  capabilities: null,
  residency: null,
  compute: null,
  maxContextTokens: null,
  replicas: 1,
  adminState: "active",
  health: { path: null, pathIsDefault: true, port: null, intervalMs: 2000 },
  rttMs: 1,
  plannedFactor: 1,
  plannedReady: 1,
  loadWps: 0,
  capacityWps: 10,
  priceMs: 0,
  worthMs: 0,
};

const CLASS: ClusterSnapshot["classes"][string] = {
  model: "",
  priority: 0,
  work: 1,
  promptTokens: 512,
  outputTokens: 256,
  firstTokenMs: null,
  needs: { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null },
};

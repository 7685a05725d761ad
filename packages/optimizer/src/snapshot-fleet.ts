import type { Fleet, SnapshotClass, SnapshotEngine } from "@guidevane/core";
import type { ProblemIndex } from "./build-problem.ts";
import type { Problem } from "./problem.ts";

/** What a plan says of each engine, in engine order of the problem. */
export interface EngineFigures {
  readonly loadWps: Float64Array;
  readonly priceMs: Float64Array;
  readonly worthMs: Float64Array;
}

/** The engines that may serve some cell of a cluster: their definitions without credentials, and their figures. */
export function snapshotEngines(
  problem: Problem,
  index: ProblemIndex,
  cells: readonly number[],
  { loadWps, priceMs, worthMs }: EngineFigures,
): Record<string, SnapshotEngine> {
  const rtts = new Map<number, number>();
  for (const cell of cells) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      rtts.set(problem.arcEngine[arc]!, index.arcRttMs[arc]!);
  }
  const engines: Record<string, SnapshotEngine> = {};
  for (const [engine, { spec, adminState, plannedFactor, plannedReady }] of index.engines.entries()) {
    const rttMs = rtts.get(engine);
    if (rttMs === undefined) continue;
    const { url, kind, region, models, capabilities, residency, compute, maxContextTokens, replicas, health } = spec;
    engines[spec.id] = {
      url,
      kind,
      region,
      models: [...models],
      capabilities: capabilities === null ? null : [...capabilities],
      residency,
      compute,
      maxContextTokens,
      replicas,
      adminState,
      health,
      rttMs,
      plannedFactor,
      plannedReady,
      loadWps: loadWps[engine]!,
      capacityWps: problem.curves.capacityWps[engine]!,
      priceMs: priceMs[engine]!,
      worthMs: worthMs[engine]!,
    };
  }
  return engines;
}

export function snapshotClasses({ classes }: Pick<Fleet, "classes">): Record<string, SnapshotClass> {
  const out: Record<string, SnapshotClass> = {};
  for (const spec of classes.values()) {
    const { model, priority, work, promptTokens, outputTokens, firstTokenMs, needs } = spec;
    out[spec.name] = {
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
  return out;
}

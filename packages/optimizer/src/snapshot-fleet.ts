import { isDeepStrictEqual } from "node:util";
import {
  classDefinition,
  engineDefinition,
  type Fleet,
  latencyDefinition,
  type Publication,
  type SnapshotClass,
  type SnapshotEngine,
} from "@guidevane/core";
import type { EngineFacts, ProblemIndex } from "./build-problem.ts";
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
  for (const [engine, facts] of index.engines.entries()) {
    const { spec } = facts;
    const rttMs = rtts.get(engine);
    if (rttMs === undefined) continue;
    engines[spec.id] = {
      ...definition(facts),
      rttMs,
      loadWps: loadWps[engine]!,
      capacityWps: problem.curves.capacityWps[engine]!,
      priceMs: priceMs[engine]!,
      worthMs: worthMs[engine]!,
    };
  }
  return engines;
}

type Definition = Omit<SnapshotEngine, "rttMs" | keyof FiguresOfSnapshot>;
type FiguresOfSnapshot = Pick<SnapshotEngine, "loadWps" | "capacityWps" | "priceMs" | "worthMs">;

/** What a snapshot says of an engine besides its distance and the plan's figures. */
function definition({ spec, profile, adminState, plannedFactor, plannedReady }: EngineFacts): Definition {
  return { ...engineDefinition(spec), latency: latencyDefinition(profile), adminState, plannedFactor, plannedReady };
}

/** How much of its health an engine may lose or win while gateways are still told the old figure. */
const FACTOR_CHANGE = 0.01;

/** Whether a publication would define the same engines, classes and aliases, with about the same health, as this one does. */
export function sameDefinitions(
  fleet: Pick<Fleet, "classes" | "aliases">,
  engines: readonly EngineFacts[],
  previous: Pick<Publication, "clusters">,
): boolean {
  const classes = snapshotClasses(fleet);
  const byId = new Map(engines.map((facts) => [facts.spec.id, definition(facts)]));
  const seen = new Set<string>();
  for (const snapshot of previous.clusters.values()) {
    for (const [id, shown] of Object.entries(snapshot.engines)) {
      if (seen.has(id)) continue;
      seen.add(id);
      const now = byId.get(id);
      if (now === undefined || Math.abs(now.plannedFactor - shown.plannedFactor) > FACTOR_CHANGE) return false;
      const { rttMs: _r, loadWps: _l, capacityWps: _c, priceMs: _p, worthMs: _w, plannedFactor: _f, ...was } = shown;
      const { plannedFactor: _, ...is } = now;
      if (!isDeepStrictEqual(is, was)) return false;
    }
  }
  const [any] = previous.clusters.values();
  if (any === undefined) return true;
  return (
    isDeepStrictEqual(classes, any.classes) && isDeepStrictEqual(Object.fromEntries(fleet.aliases), any.aliases ?? {})
  );
}

export function snapshotClasses({ classes }: Pick<Fleet, "classes">): Record<string, SnapshotClass> {
  return Object.fromEntries([...classes].map(([name, spec]) => [name, classDefinition(spec)]));
}

import { type ClusterSnapshot, type SnapshotEngine, valueAt } from "@guidevane/core";
import type { PenaltyCell, PenaltyEngine, PenaltyFleet } from "./penalty-limits.ts";

/** What an engine's answers are held against. */
export interface ExpectedTimes {
  ttftMs(promptTokens: number): number;
  readonly tbotMs: number;
}

/** By the profile at the planned load, network included; null where the snapshot has no profile. */
export function expectedTimes({ latency, loadWps, capacityWps, rttMs }: SnapshotEngine): ExpectedTimes | null {
  if (latency === undefined) return null;
  const utilisation = capacityWps > 0 ? Math.min(1, loadWps / capacityWps) : 0;
  const late = Math.min(1, utilisation + Number(process.env.MARGIN ?? 0));
  return {
    ttftMs(promptTokens: number): number {
      const longerMs = latency.prefillMsPerTok * (promptTokens - latency.promptTokens);
      return rttMs + Math.max(0, valueAt(latency.ttftMs, late) + longerMs);
    },
    tbotMs: valueAt(latency.tbotMs, utilisation),
  };
}

/** What the limits of penalties need of a snapshot. @param takes whether an engine takes traffic by its health */
export function penaltyFleet(snapshot: ClusterSnapshot, takes: (engine: string) => boolean): PenaltyFleet {
  const engines = new Map<string, PenaltyEngine>();
  const planned: string[] = [];
  for (const [id, { plannedFactor, loadWps, capacityWps }] of Object.entries(snapshot.engines)) {
    if (plannedFactor < 1) planned.push(id);
    const figures = { plannedFactor, loadWps, capacityWps };
    engines.set(id, {
      ...figures,
      get takes() {
        return takes(id);
      },
    });
  }
  let cells: PenaltyCell[] | null = null;
  return {
    engines,
    // Thousands of pairs that nobody asks for while no engine is sick.
    get cells() {
      cells ??= snapshot.cells.map((cell) => cellOf(cell, snapshot, planned));
      return cells;
    },
  };
}

/** Those of the ring, the reserves, and those that the plan keeps from traffic because they fail. */
function cellOf(
  { engines, weights, reserves, class: name }: ClusterSnapshot["cells"][number],
  snapshot: ClusterSnapshot,
  planned: readonly string[],
): PenaltyCell {
  const model = snapshot.classes[name]!.model;
  const shares = new Map<string, number>();
  for (const id of planned) if (snapshot.engines[id]!.models.includes(model)) shares.set(id, 0);
  for (const { engine } of reserves) shares.set(engine, 0);
  for (const [at, id] of engines.entries()) shares.set(id, weights[at]!);
  return shares;
}

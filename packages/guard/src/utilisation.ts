import type { ClusterSnapshot, SnapshotCell } from "@guidevane/core";

/** First attempts of one cell at this gateway, requests/s. */
export interface CellFlow {
  readonly rps: number;
  /** When the snapshot came; null = nothing was known then. */
  readonly plannedRps: number | null;
}

/** Own rates below this part of what the plan gave the gateway say nothing about the plan. */
const LEAST_PART = 0.1;

/**
 * How far first attempts use the engines of each cell of a snapshot, ρ by class:
 *
 *     ρ = Σ_e v_e · (y_e + lost·v_e) ÷ U_e,     v_e = w_e·f_e ÷ Σ_e w_e·f_e,     lost = Σ_e y_e·(1 − f_e)
 *
 * w_e the cell's weights, U_e planned capacity, f_e the part of its share that the engine takes now (0 = dead): what an
 * engine does not take falls on the others by their weights. y_e is the planned load, of which the part that the cells of
 * this cluster put there is scaled by each cell's own rate now ÷ when the snapshot was made. Where the gateway had no rate
 * then, its part of the cell is all that it sees, times the live gateways. Total load and successes stay out of it: both
 * move with the retries that ρ is to limit.
 */
export function cellUtilisations(
  snapshot: ClusterSnapshot,
  flowOf: (requestClass: string) => CellFlow,
  factorOf: (engine: string) => number,
): Map<string, number> {
  const loads = loadsNow(snapshot, flowOf);
  return new Map(snapshot.cells.map((cell) => [cell.class, utilisationOf(cell, snapshot, loads, factorOf)] as const));
}

/** Load of each engine by the plan, corrected by what this gateway sees, work units/s. */
function loadsNow(snapshot: ClusterSnapshot, flowOf: (requestClass: string) => CellFlow): Map<string, number> {
  const gateways = Math.max(1, snapshot.gateways);
  const loads = new Map(Object.entries(snapshot.engines).map(([id, { loadWps }]) => [id, loadWps]));
  const seen = new Map<string, number>();
  for (const cell of snapshot.cells) {
    const { rps, plannedRps } = flowOf(cell.class);
    const planned = cell.demandRps * (1 - cell.shed);
    const known = planned > 0 && plannedRps !== null && plannedRps > (LEAST_PART * planned) / gateways;
    const now = known ? (planned * rps) / plannedRps : rps * gateways;
    for (const [i, id] of cell.engines.entries()) {
      const part = cell.work * cell.weights[i]!;
      loads.set(id, Math.max(0, (loads.get(id) ?? 0) - planned * part));
      seen.set(id, (seen.get(id) ?? 0) + now * part);
    }
  }
  for (const [id, load] of seen) loads.set(id, (loads.get(id) ?? 0) + load);
  return loads;
}

function utilisationOf(
  { engines, weights }: SnapshotCell,
  snapshot: ClusterSnapshot,
  loads: ReadonlyMap<string, number>,
  factorOf: (engine: string) => number,
): number {
  const taken = engines.map((id, i) => weights[i]! * factorOf(id));
  const whole = taken.reduce((sum, each) => sum + each, 0);
  if (whole === 0) return Number.POSITIVE_INFINITY;
  const lost = engines.reduce((sum, id) => sum + (loads.get(id) ?? 0) * (1 - factorOf(id)), 0);
  let utilisation = 0;
  for (const [i, id] of engines.entries()) {
    const part = taken[i]! / whole;
    if (part === 0) continue;
    const capacityWps = snapshot.engines[id]?.capacityWps ?? 0;
    utilisation += (part * ((loads.get(id) ?? 0) + lost * part)) / capacityWps;
  }
  return utilisation;
}

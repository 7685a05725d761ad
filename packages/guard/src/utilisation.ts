import { type ClusterSnapshot, type PlanColumns, planColumns } from "@guidevane/core";

/** First attempts of one cell at this gateway, requests/s. */
export interface CellFlow {
  readonly rps: number;
  /** When the snapshot came; null = nothing was known then. */
  readonly plannedRps: number | null;
}

/** Own rates below this part of what the plan gave the gateway say nothing about the plan. */
const LEAST_PART = 0.1;

/** Whether an own rate when the snapshot came can be held against the present one. @param givenRps this gateway's part of the plan */
export function tellsOfPlan(plannedRps: number | null, givenRps: number): plannedRps is number {
  return plannedRps !== null && plannedRps > LEAST_PART * givenRps;
}

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
  const parts = utilisationParts(snapshot, flowOf, factorOf);
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
  }
}

/** Pairs of a cell and an engine, or engines, that are looked at in one part: some tens of microseconds. */
const PAIRS_A_PART = 4096;
const ENGINES_A_PART = 256;

/** The same in small parts, for a thread that has more to do: it may yield between them. */
export function* utilisationParts(
  snapshot: ClusterSnapshot,
  flowOf: (requestClass: string) => CellFlow,
  factorOf: (engine: string) => number,
): Generator<void, Map<string, number>> {
  const columns = planColumns(snapshot);
  const loads = yield* loadsNow(snapshot, columns, flowOf);
  const factors = new Float64Array(columns.engines.length);
  for (let engine = 0; engine < factors.length; engine++) {
    if (engine % ENGINES_A_PART === ENGINES_A_PART - 1) yield;
    factors[engine] = factorOf(columns.engines[engine]!);
  }
  const utilisations = new Map<string, number>();
  const part = new PairCount(columns);
  for (const [cell, { class: name }] of snapshot.cells.entries()) {
    if (part.isFull(cell)) yield;
    utilisations.set(name, utilisationOf(cell, columns, loads, factors));
  }
  return utilisations;
}

/** Counts the pairs of the cells that are looked at one after the other. */
class PairCount {
  readonly #pairAt: Uint32Array;
  #from = 0;

  constructor({ pairAt }: PlanColumns) {
    this.#pairAt = pairAt;
  }

  /** Whether another part should begin with this cell. */
  isFull(cell: number): boolean {
    const at = this.#pairAt[cell]!;
    if (at - this.#from < PAIRS_A_PART) return false;
    this.#from = at;
    return true;
  }
}

/** Load of each engine by the plan, corrected by what this gateway sees, work units/s. */
function* loadsNow(
  snapshot: ClusterSnapshot,
  columns: PlanColumns,
  flowOf: (requestClass: string) => CellFlow,
): Generator<void, Float64Array> {
  const { loadWps, pairAt, pairEngine, weights } = columns;
  const count = new PairCount(columns);
  const gateways = Math.max(1, snapshot.gateways);
  const loads = loadWps.slice();
  const seen = new Float64Array(loads.length);
  for (const [cell, { class: name, demandRps, shed, work }] of snapshot.cells.entries()) {
    if (count.isFull(cell)) yield;
    const { rps, plannedRps } = flowOf(name);
    const planned = demandRps * (1 - shed);
    const isKnown = planned > 0 && tellsOfPlan(plannedRps, planned / gateways);
    const now = isKnown ? (planned * rps) / plannedRps : rps * gateways;
    for (let pair = pairAt[cell]!; pair < pairAt[cell + 1]!; pair++) {
      const engine = pairEngine[pair]!;
      const part = work * weights[pair]!;
      loads[engine] = Math.max(0, loads[engine]! - planned * part);
      seen[engine]! += now * part;
    }
  }
  for (let engine = 0; engine < loads.length; engine++) loads[engine]! += seen[engine]!;
  return loads;
}

function utilisationOf(
  cell: number,
  { pairAt, pairEngine, weights, capacityWps }: PlanColumns,
  loads: Float64Array,
  factors: Float64Array,
): number {
  const [start, end] = [pairAt[cell]!, pairAt[cell + 1]!];
  let whole = 0;
  let lost = 0;
  for (let pair = start; pair < end; pair++) {
    const engine = pairEngine[pair]!;
    whole += weights[pair]! * factors[engine]!;
    lost += loads[engine]! * (1 - factors[engine]!);
  }
  if (whole === 0) return Number.POSITIVE_INFINITY;
  let utilisation = 0;
  for (let pair = start; pair < end; pair++) {
    const engine = pairEngine[pair]!;
    const part = (weights[pair]! * factors[engine]!) / whole;
    if (part > 0) utilisation += (part * (loads[engine]! + lost * part)) / capacityWps[engine]!;
  }
  return utilisation;
}

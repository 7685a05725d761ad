/** Why an engine is penalised. The two are tested, limited and reported apart. */
export type PenaltyKind = "failing" | "slow";

/** All penalties of a cell together take at most this part of its slots. */
const REMOVED_MOST = 0.3;
/** A penalty for slowness must leave the rest below this utilisation: slow is better than overloaded. */
const REST_UTILISATION = 0.95;
/** Less than this of a cell is rounding. */
const NOTHING = 1e-9;

/** What a snapshot and the engine's health say that the limits need. */
export interface PenaltyEngine {
  /** Not dead, draining or out. */
  readonly takes: boolean;
  /** 1 − severity that the weights were planned with. */
  readonly plannedFactor: number;
  /** Planned load from the whole fleet and what it has risen by, and what it was planned to hold, units of work/s. */
  readonly loadWps: number;
  readonly capacityWps: number;
}

/** One cell: every engine that serves its class, with its part of the ring's slots; 0 = a reserve, or planned out. */
export type PenaltyCell = ReadonlyMap<string, number>;

export interface PenaltyFleet {
  readonly engines: ReadonlyMap<string, PenaltyEngine>;
  readonly cells: readonly PenaltyCell[];
}

/** What a test asks for. */
export interface PenaltyWish {
  readonly engine: string;
  readonly kind: PenaltyKind;
  /** What the engine's share is to be multiplied by, 0..1, before what it was planned with is taken into account. */
  readonly factor: number;
  /** Part of its answers that it spoils: worst first. */
  readonly badness: number;
}

/** Which wishes are granted, worst first within the limits; those left out are capped. */
export function grantPenalties(wishes: readonly PenaltyWish[], fleet: PenaltyFleet): Set<PenaltyWish> {
  const granted = new Set<PenaltyWish>();
  for (const wish of [...wishes].sort(worstFirst)) {
    const cells = fleet.cells.filter((cell) => cell.has(wish.engine));
    if (cells.every((cell) => fits(wish, cell, granted, fleet))) granted.add(wish);
  }
  return granted;
}

/** Failing before slow: an answer that comes late is still an answer. */
function worstFirst(a: PenaltyWish, b: PenaltyWish): number {
  if (a.kind !== b.kind) return a.kind === "failing" ? -1 : 1;
  return b.badness - a.badness || (a.engine < b.engine ? -1 : 1);
}

function fits(wish: PenaltyWish, cell: PenaltyCell, granted: ReadonlySet<PenaltyWish>, fleet: PenaltyFleet): boolean {
  // What is dead or draining takes nothing anyway, and its penalty removes nothing.
  if (fleet.engines.get(wish.engine)?.takes !== true) return true;
  const others = [...cell.keys()].filter((id) => id !== wish.engine && fleet.engines.get(id)?.takes === true);
  if (others.length === 0) return false;
  const factors = factorsOf(granted, fleet);
  const before = factors.get(wish.engine) ?? 1;
  const after = before * localFactor(wish, fleet.engines.get(wish.engine));
  const lost = plannedAway(cell, fleet);
  let elsewhere = 0;
  for (const [id, share] of cell) {
    if (id === wish.engine || fleet.engines.get(id)?.takes !== true) continue;
    elsewhere += share * (1 - (factors.get(id) ?? 1)) + (lost.get(id) ?? 0);
  }
  const own = cell.get(wish.engine)! * (1 - after) + (lost.get(wish.engine) ?? 0);
  // The first one may always go: one sick engine may own more of a cell than the limit.
  if (elsewhere > NOTHING && elsewhere + own > REMOVED_MOST) return false;
  return wish.kind === "failing" || restUtilisation(wish.engine, after, cell, factors, fleet) <= REST_UTILISATION;
}

/** What the plan has not already taken from it. */
export function localFactor({ kind, factor }: PenaltyWish, engine: PenaltyEngine | undefined): number {
  if (kind === "slow" || engine === undefined) return factor;
  return factor >= engine.plannedFactor ? 1 : factor / engine.plannedFactor;
}

function factorsOf(granted: ReadonlySet<PenaltyWish>, { engines }: PenaltyFleet): Map<string, number> {
  const factors = new Map<string, number>();
  for (const wish of granted) {
    const local = localFactor(wish, engines.get(wish.engine));
    factors.set(wish.engine, (factors.get(wish.engine) ?? 1) * local);
  }
  return factors;
}

/**
 * Parts of the cell that the plan itself took from failing engines. They count as removed: else each plan that follows a
 * penalty would make room for the next one, until nothing is left.
 */
function plannedAway(cell: PenaltyCell, { engines }: PenaltyFleet): Map<string, number> {
  const whole = [...cell.keys()].map((id) => {
    const engine = engines.get(id);
    if (engine === undefined || !engine.takes) return { id, healthyWps: 0, factor: 1 };
    const factor = Math.max(engine.plannedFactor, NOTHING);
    return { id, healthyWps: engine.capacityWps / factor, factor };
  });
  const sum = whole.reduce((total, { healthyWps }) => total + healthyWps, 0);
  return new Map(
    whole.flatMap(({ id, healthyWps, factor }) =>
      sum > 0 && factor < 1 ? [[id, (healthyWps / sum) * (1 - factor)] as const] : [],
    ),
  );
}

/** Load of the cell's engines ÷ capacity of those left, by these figures, once this engine is cut to `factor`. */
function restUtilisation(
  engine: string,
  factor: number,
  cell: PenaltyCell,
  factors: ReadonlyMap<string, number>,
  { engines }: PenaltyFleet,
): number {
  let loadWps = 0;
  let capacityWps = 0;
  for (const id of cell.keys()) {
    const each = engines.get(id);
    if (each === undefined) continue;
    loadWps += each.loadWps;
    if (!each.takes) continue;
    capacityWps += each.capacityWps * (id === engine ? factor : (factors.get(id) ?? 1));
  }
  if (loadWps === 0) return 0;
  return capacityWps > 0 ? loadWps / capacityWps : Number.POSITIVE_INFINITY;
}

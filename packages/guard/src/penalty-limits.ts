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
export type PenaltyCell = Pick<ReadonlyMap<string, number>, "has" | "get" | "keys">;

export interface PenaltyFleet {
  readonly engines: ReadonlyMap<string, PenaltyEngine>;
  /** All engines that take nothing now, and others perhaps; left out = each must be looked at. */
  readonly out?: () => Iterable<string>;
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
  if (wishes.length === 0) return granted;
  const factors = new Map<string, number>();
  const budgets = new Map<PenaltyCell, CellBudget>();
  const engineOf = readOnce(fleet);
  for (const wish of [...wishes].sort(worstFirst)) {
    const engine = engineOf(wish.engine);
    // What is dead or draining takes nothing anyway, and its penalty removes nothing.
    if (engine?.takes !== true) {
      granted.add(wish);
      continue;
    }
    const before = factors.get(wish.engine) ?? 1;
    const after = before * localFactor(wish, engine);
    const limited: CellBudget[] = [];
    const fits = fleet.cells.every((cell) => {
      if (!cell.has(wish.engine)) return true;
      let budget = budgets.get(cell);
      if (budget === undefined) {
        budget = new CellBudget(cell, engineOf);
        budgets.set(cell, budget);
      }
      limited.push(budget);
      return budget.allows(wish, engine, before, after);
    });
    if (!fits) continue;
    granted.add(wish);
    factors.set(wish.engine, after);
    for (const budget of limited) budget.take(wish.engine, engine, before, after);
  }
  return granted;
}

/** Each engine as it stands in this call: what is told of a thousand of them is asked for once. */
function readOnce({ engines }: PenaltyFleet): (id: string) => PenaltyEngine | undefined {
  const read = new Map<string, PenaltyEngine | undefined>();
  return (id) => {
    if (read.has(id)) return read.get(id);
    const engine = engines.get(id);
    const now = engine === undefined ? undefined : copyOf(engine);
    read.set(id, now);
    return now;
  };
}

/** Its columns may be getters. */
function copyOf({ takes, plannedFactor, loadWps, capacityWps }: PenaltyEngine): PenaltyEngine {
  return { takes, plannedFactor, loadWps, capacityWps };
}

/** Failing before slow: an answer that comes late is still an answer. */
function worstFirst(a: PenaltyWish, b: PenaltyWish): number {
  if (a.kind !== b.kind) return a.kind === "failing" ? -1 : 1;
  return b.badness - a.badness || (a.engine < b.engine ? -1 : 1);
}

/** What the plan has not already taken from it. */
export function localFactor({ kind, factor }: PenaltyWish, engine: PenaltyEngine | undefined): number {
  if (kind === "slow" || engine === undefined) return factor;
  return factor >= engine.plannedFactor ? 1 : factor / engine.plannedFactor;
}

/**
 * What penalties take from one cell. Sums over its engines, made once and kept up while wishes are granted: to add them up
 * for each wish takes 0.4 s a tick where many of 1,000 engines look sick.
 */
class CellBudget {
  readonly #cell: PenaltyCell;
  readonly #lost: ReadonlyMap<string, number>;
  /** Engines that take traffic. */
  #takers = 0;
  /** Part of the slots that penalties and the plan took from those. */
  #removed = 0;
  /** Of all engines, and of those that take traffic after their penalties, work units/s. */
  #loadWps = 0;
  #capacityWps = 0;

  constructor(cell: PenaltyCell, engineOf: (id: string) => PenaltyEngine | undefined) {
    this.#cell = cell;
    this.#lost = plannedAway(cell, engineOf);
    for (const lost of this.#lost.values()) this.#removed += lost;
    for (const id of cell.keys()) {
      const engine = engineOf(id);
      if (engine === undefined) continue;
      this.#loadWps += engine.loadWps;
      if (!engine.takes) continue;
      this.#takers++;
      this.#capacityWps += engine.capacityWps;
    }
  }

  /** Whether the engine's share may be multiplied by `after` instead of `before`. */
  allows({ engine: id, kind }: PenaltyWish, { capacityWps }: PenaltyEngine, before: number, after: number): boolean {
    if (this.#takers === 1) return false;
    const share = this.#cell.get(id)!;
    const lost = this.#lost.get(id) ?? 0;
    const elsewhere = this.#removed - share * (1 - before) - lost;
    // The first one may always go: one sick engine may own more of a cell than the limit.
    if (elsewhere > NOTHING && elsewhere + share * (1 - after) + lost > REMOVED_MOST) return false;
    if (kind === "failing" || this.#loadWps === 0) return true;
    const left = this.#capacityWps - capacityWps * (before - after);
    return this.#loadWps <= REST_UTILISATION * left;
  }

  take(id: string, { capacityWps }: PenaltyEngine, before: number, after: number): void {
    this.#removed += this.#cell.get(id)! * (before - after);
    this.#capacityWps -= capacityWps * (before - after);
  }
}

/**
 * Parts of the cell that the plan itself took from failing engines. They count as removed: else each plan that follows a
 * penalty would make room for the next one, until nothing is left.
 */
function plannedAway(
  cell: PenaltyCell,
  engineOf: (id: string) => PenaltyEngine | undefined,
): ReadonlyMap<string, number> {
  const lost = new Map<string, number>();
  let sum = 0;
  for (const id of cell.keys()) {
    const engine = engineOf(id);
    if (engine?.takes !== true) continue;
    const factor = Math.max(engine.plannedFactor, NOTHING);
    const healthyWps = engine.capacityWps / factor;
    sum += healthyWps;
    if (factor < 1) lost.set(id, healthyWps * (1 - factor));
  }
  if (!(sum > 0)) return new Map();
  for (const [id, wps] of lost) lost.set(id, wps / sum);
  return lost;
}

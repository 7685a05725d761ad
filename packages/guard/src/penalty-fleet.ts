import { type ClusterSnapshot, planColumns, type SnapshotCell, type SnapshotEngine, valueAt } from "@guidevane/core";
import type { PenaltyCell, PenaltyEngine, PenaltyFleet } from "./penalty-limits.ts";

/** What an engine's answers are held against. */
export interface ExpectedTimes {
  /**
   * @param metTokens mean length of the prompts that it may have to wait for (`PromptLengths`)
   * @returns null = no time would be too long
   */
  ttftMs(promptTokens: number, metTokens: number): number | null;
  readonly tbotMs: number;
}

/**
 * By the profile, network included; null where the snapshot has no profile. Times between tokens are those at the planned
 * load, times to the first token those with the queue of `QUEUES_AT` times as much, and unknown above `TELLS_UNTIL`.
 *
 * A profile's queue is one of reference prompts, all of one length. At the same utilisation the mean wait is in proportion
 * to what is left of the prompt that is being read (M/G/1: ρ ÷ (1 − ρ) × E[S²] ÷ 2E[S]), so behind longer prompts, though
 * there are fewer of them, the queue takes as many times as long as they take to read. Behind shorter ones it is left as it
 * is: what else it is made of does not shrink with them.
 */
export function expectedTimes({ latency, loadWps, capacityWps, rttMs }: SnapshotEngine): ExpectedTimes | null {
  if (latency === undefined) return null;
  const utilisation = capacityWps > 0 ? Math.min(1, loadWps / capacityWps) : 0;
  const aloneMs = valueAt(latency.ttftMs, 0);
  const queueMs = valueAt(latency.ttftMs, Math.min(1, QUEUES_AT * utilisation)) - aloneMs;
  const readMs = (tokens: number) => Math.max(0, aloneMs + latency.prefillMsPerTok * (tokens - latency.promptTokens));
  const tells = utilisation <= TELLS_UNTIL;
  return {
    ttftMs(promptTokens, metTokens) {
      if (!tells) return null;
      const timesAsLong = aloneMs > 0 ? Math.max(1, readMs(metTokens) / aloneMs) : 1;
      return rttMs + readMs(promptTokens) + timesAsLong * queueMs;
    },
    tbotMs: valueAt(latency.tbotMs, utilisation),
  };
}

/**
 * Times the planned utilisation whose queue an engine may have for a while, by chance and for want of cached prefixes.
 * That is no sickness, and who takes traffic from there loses caches and makes the next queue: at 1 the policy lab's
 * healthy engines are penalised three times an engine-hour at 60 % load, and a tenth is shed at 80 %. More than 2 would
 * blunt the test where load is low and a late beginning says the most.
 */
const QUEUES_AT = 2;

/**
 * Above it a first token may wait for any time, and only the times between tokens tell a sick engine from a full one:
 * without this limit the lab still penalises a healthy engine now and then at 80 %, and with it none.
 */
const TELLS_UNTIL = 0.75;

/**
 * What the limits of penalties need of a snapshot.
 *
 * @param takes whether an engine takes traffic by its health
 * @param risenWps an engine's load beyond the plan by now, work units/s
 * @param out all engines that take nothing now; left out = each must be looked at
 */
export function penaltyFleet(
  snapshot: ClusterSnapshot,
  takes: (engine: string) => boolean,
  risenWps: (engine: string) => number,
  out?: () => Iterable<string>,
): PenaltyFleet {
  const engines = new Map<string, PenaltyEngine>();
  const planned: string[] = [];
  const now = { takes, risenWps };
  for (const [id, engine] of Object.entries(snapshot.engines)) {
    if (engine.plannedFactor < 1) planned.push(id);
    engines.set(id, new EngineNow(id, engine, now));
  }
  let cells: PenaltyCell[] | null = null;
  return {
    engines,
    ...(out === undefined ? {} : { out }),
    // Thousands of pairs that nobody asks for while no engine is sick.
    get cells() {
      cells ??= cellsOf(snapshot, planned);
      return cells;
    },
  };
}

/** An engine of the snapshot as it stands when it is asked for. */
class EngineNow implements PenaltyEngine {
  readonly #id: string;
  readonly #engine: SnapshotEngine;
  readonly #now: EnginesNow;

  constructor(id: string, engine: SnapshotEngine, now: EnginesNow) {
    this.#id = id;
    this.#engine = engine;
    this.#now = now;
  }

  get takes(): boolean {
    return this.#now.takes(this.#id);
  }

  get plannedFactor(): number {
    return this.#engine.plannedFactor;
  }

  get loadWps(): number {
    return this.#engine.loadWps + this.#now.risenWps(this.#id);
  }

  get capacityWps(): number {
    return this.#engine.capacityWps;
  }
}

interface EnginesNow {
  readonly takes: (engine: string) => boolean;
  readonly risenWps: (engine: string) => number;
}

/** All cells; which engines one has is known at once, and the rest is read where a sick engine is one of them. */
function cellsOf(snapshot: ClusterSnapshot, planned: readonly string[]): PenaltyCell[] {
  const { engines, pairAt, pairEngine } = planColumns(snapshot);
  const indexOf = new Map(engines.map((id, index) => [id, index]));
  return snapshot.cells.map((cell, at) => {
    const has = new Uint8Array(engines.length);
    for (let pair = pairAt[at]!; pair < pairAt[at + 1]!; pair++) has[pairEngine[pair]!] = 1;
    for (const { engine } of cell.reserves) has[indexOf.get(engine)!] = 1;
    for (const id of plannedFor(cell, snapshot, planned)) has[indexOf.get(id)!] = 1;
    let shares: ReadonlyMap<string, number> | null = null;
    const read = (): ReadonlyMap<string, number> => {
      shares ??= sharesOf(cell, snapshot, planned);
      return shares;
    };
    return {
      has: (id) => has[indexOf.get(id) ?? -1] === 1,
      get: (id) => read().get(id),
      keys: () => read().keys(),
    };
  });
}

/** Engines that could serve a cell's class and that the plan keeps from traffic because they fail. */
function plannedFor(
  { class: name }: SnapshotCell,
  { classes, engines }: ClusterSnapshot,
  planned: readonly string[],
): string[] {
  const { model } = classes[name]!;
  return planned.filter((id) => engines[id]!.models.includes(model));
}

/** Those of the ring, the reserves, and those that the plan keeps from traffic. */
function sharesOf(cell: SnapshotCell, snapshot: ClusterSnapshot, planned: readonly string[]): Map<string, number> {
  const { engines, weights, reserves } = cell;
  const shares = new Map<string, number>();
  for (const id of plannedFor(cell, snapshot, planned)) shares.set(id, 0);
  for (const { engine } of reserves) shares.set(engine, 0);
  for (const [at, id] of engines.entries()) shares.set(id, weights[at]!);
  return shares;
}

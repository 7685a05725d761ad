import { type ClusterSnapshot, type SnapshotEngine, valueAt } from "@guidevane/core";
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
  for (const [id, { plannedFactor, loadWps, capacityWps }] of Object.entries(snapshot.engines)) {
    if (plannedFactor < 1) planned.push(id);
    engines.set(id, {
      plannedFactor,
      capacityWps,
      get loadWps() {
        return loadWps + risenWps(id);
      },
      get takes() {
        return takes(id);
      },
    });
  }
  let cells: PenaltyCell[] | null = null;
  return {
    engines,
    ...(out === undefined ? {} : { out }),
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

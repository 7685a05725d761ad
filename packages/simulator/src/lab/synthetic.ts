import {
  type ClassSpec,
  type Fleet,
  GuidevaneError,
  idleMs,
  type Random,
  seededRandom,
  standardNormal,
} from "@guidevane/core";
import { labFleet } from "./lab-fleet.ts";
import { type Workload, type WorkloadRow, workloadOf } from "./workload.ts";

export interface SyntheticOptions {
  readonly fleet: Fleet;
  readonly seed: number;
  readonly seconds: number;
  /** Offered work ÷ all capacity. Left out: the fleet file's `demandRps` as they are. */
  readonly load?: number;
  /** Mean turns of a conversation; 1 = every request is a first one. Default 5. */
  readonly turns?: number;
  /** Mean pause between an answer's expected end and the next turn. Default 10,000. */
  readonly thinkMs?: number;
  /** Tokens of the prompt that all conversations of a class begin with. Default 512. */
  readonly systemTokens?: number;
  /** Coefficient of variation of token counts, log-normal; 0 = every request the same. Default 0.6. */
  readonly spread?: number;
  readonly blockTokens?: number;
  /** What the demand of a cell is multiplied by at a time; at most 4. Default 1. */
  readonly shape?: (cluster: string, atMs: number, requestClass: string) => number;
  /** Part of the conversations that are hot: six times as many turns, six times as fast. Default 0. */
  readonly hotPart?: number;
}

/**
 * Conversations that begin as a Poisson stream in each cell and go on for a geometric number of turns, each prompt being
 * the conversation so far. A class's `promptTokens` are what a turn adds, the tokens that are in no cache; follow-ups come
 * at times of their own (expected answer + pause), so that all policies see the same arrivals.
 *
 * @throws GuidevaneError `bad_trace` for a fleet without demand
 */
export function syntheticWorkload(options: SyntheticOptions): Workload {
  const { fleet, seed, seconds, turns = 5, thinkMs = 10_000, systemTokens = 512, spread = 0.6 } = options;
  const { blockTokens = 256, shape = () => 1, hotPart = 0 } = options;
  const random = seededRandom(seed);
  const cells = [...fleet.demandRps].flatMap(([cluster, byClass]) =>
    [...byClass].map(([name, rps]) => ({ cluster, spec: fleet.classes.get(name)!, rps })),
  );
  const offeredWps = cells.reduce((sum, { spec, rps }) => sum + rps * spec.work, 0);
  if (!(offeredWps > 0))
    throw new GuidevaneError("bad_trace", "the fleet file has no demandRps, so there is nothing to simulate");
  const lab = labFleet(fleet);
  const capacityWps = lab.capacityWps.reduce((sum, each) => sum + each, 0);
  const factor = options.load === undefined ? 1 : (options.load * capacityWps) / offeredWps;
  const clusters = lab.clusters.map(({ name }) => name);
  const classes = lab.classes.map(({ name }) => name);
  const answerMs = new Map(
    lab.classes.map((spec) => [spec.name, Math.min(...lab.profiles.map((profile) => idleMs(profile, spec)))]),
  );

  const rows: WorkloadRow[] = [];
  let conversation = 0;
  let nextBlock = classes.length * SYSTEM_BLOCKS_MAX;
  const settleMs =
    turns <= 1 ? 0 : SETTLE_TURNS * turns * (thinkMs + ANSWER_ALLOWANCE * Math.max(...answerMs.values()));
  const endMs = settleMs + seconds * 1000;
  for (const { cluster, spec, rps } of cells) {
    const beginRps = (rps * factor) / (turns * (1 + (HOT_TIMES - 1) * hotPart));
    let atMs = 0;
    for (;;) {
      atMs -= (Math.log(1 - random()) * 1000) / (beginRps * SHAPE_MAX);
      if (atMs >= endMs) break;
      if (random() * SHAPE_MAX >= shape(cluster, Math.max(0, atMs - settleMs), spec.name)) continue;
      const id = conversation++;
      const place = { cluster: clusters.indexOf(cluster), requestClass: classes.indexOf(spec.name), conversation: id };
      const times = hotPart > 0 && random() < hotPart ? HOT_TIMES : 1;
      const sizes = { turns: turns * times, turnsMost: TURNS_MAX * times, spread, systemTokens, blockTokens };
      const talk = talkOf(spec, sizes, place.requestClass, nextBlock, random);
      nextBlock += talk.blocks.length;
      let turnMs = atMs;
      for (const [turn, each] of talk.turns.entries()) {
        if (turnMs >= endMs) break;
        rows.push({ ...place, atMs: turnMs, turn, blocks: talk.blocks, ...each });
        turnMs += answerMs.get(spec.name)! * ANSWER_ALLOWANCE - (Math.log(1 - random()) * thinkMs) / times;
      }
    }
  }
  const offered = factor * offeredWps;
  return workloadOf(
    {
      name: `synthetic conversations, ${(offered / capacityWps).toFixed(2)} of the capacity, seed ${seed}`,
      assumptions: [
        `Poisson beginnings, ${turns} turns on average, pauses of ${thinkMs / 1000} s on average`,
        `token counts log-normal about the fleet file's, coefficient of variation ${spread}`,
        ...(hotPart > 0
          ? [
              `of the conversations ${100 * hotPart} % have ${HOT_TIMES} times as many turns and pauses ${HOT_TIMES} times as short`,
            ]
          : []),
        "follow-ups come at their own times, whether the answer before has come or not",
      ],
      settleMs,
      clusters,
      classes,
      blockTokens,
    },
    rows,
  );
}

interface TalkShape {
  readonly turns: number;
  readonly turnsMost: number;
  readonly spread: number;
  readonly systemTokens: number;
  readonly blockTokens: number;
}

/** One conversation: its turns' sizes, and the ids of all its blocks, the class's system prompt first. */
function talkOf(spec: ClassSpec, shape: TalkShape, requestClass: number, firstBlock: number, random: Random) {
  const { systemTokens, blockTokens, spread } = shape;
  // The last block of a cached prompt is on average half full, and that half is read again.
  const addedMean = Math.max(16, spec.promptTokens - (shape.turns > 1 ? blockTokens / 2 : 0));
  const turns: Pick<WorkloadRow, "promptTokens" | "outputTokens" | "promptBlocks" | "afterBlocks">[] = [];
  let length = systemTokens;
  do {
    length += Math.max(1, Math.round(logNormal(addedMean, spread, random)));
    const outputTokens = Math.max(1, Math.round(logNormal(spec.outputTokens, spread, random)));
    turns.push({
      promptTokens: length,
      outputTokens,
      promptBlocks: Math.floor(length / blockTokens),
      afterBlocks: Math.floor((length + outputTokens) / blockTokens),
    });
    length += outputTokens;
  } while (turns.length < shape.turnsMost && random() < 1 - 1 / shape.turns);
  const shared = Math.min(SYSTEM_BLOCKS_MAX, Math.floor(systemTokens / blockTokens));
  const blocks = Array.from({ length: turns.at(-1)!.afterBlocks }, (_, index) =>
    index < shared ? requestClass * SYSTEM_BLOCKS_MAX + index : firstBlock + index,
  );
  return { turns, blocks };
}

/** Of mean `mean`. */
function logNormal(mean: number, spread: number, random: Random): number {
  if (spread === 0) return mean;
  const variance = Math.log(1 + spread * spread);
  return mean * Math.exp(Math.sqrt(variance) * standardNormal(random) - variance / 2);
}

const SYSTEM_BLOCKS_MAX = 1024;
const SHAPE_MAX = 4;
const TURNS_MAX = 40;
const HOT_TIMES = 6;
/** Turns take longer under load than at an idle engine. */
const ANSWER_ALLOWANCE = 2;
/** After so many times the mean length of a conversation as many end as begin, but for one of a hundred. */
const SETTLE_TURNS = 5;

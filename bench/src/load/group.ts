import type { BenchForm } from "../case.ts";
import { bareNode } from "../fronts/bare-node.ts";
import type { Front, RunningFront } from "../fronts/front.ts";
import { guidevane } from "../fronts/guidevane.ts";
import { nginx } from "../fronts/nginx.ts";
import { smg, vllmRouter } from "../fronts/rust-routers.ts";
import { type Cores, chooseCores } from "./cores.ts";
import { buildGenerator, type Stub, startStub } from "./generator.ts";
import { type Drive, type Measured, measureFront, type RoundsResult, summarise } from "./rounds.ts";

/** A group that loads whole processes instead of timing calls. */
export interface LoadGroup {
  readonly name: string;
  run(form: BenchForm, print: (line: string) => void): Promise<LoadFindings>;
}

export interface LoadFindings {
  /** Nanoseconds per operation. */
  readonly cases: Readonly<Record<string, RoundsResult>>;
  /** Case ÷ case. */
  readonly ratios: Readonly<Record<string, number>>;
  readonly figures: Readonly<Record<string, number>>;
  readonly missing: readonly string[];
}

/** One load, and what is read from each window of it. */
export interface LoadCase {
  readonly drive: Drive;
  readonly readings: readonly Reading[];
}

export interface Reading {
  /** `request/1-KB`: the front's name comes behind it. */
  readonly name: string;
  /** Nanoseconds. */
  value(measured: Measured): number;
}

const fronts: readonly Front[] = [nginx, bareNode, vllmRouter, smg, guidevane];
/** Others' figures are given by this one's. */
export const YARDSTICK = nginx.name;

export interface Bench {
  readonly cores: Cores | null;
  readonly stub: Stub;
  readonly present: readonly Front[];
  readonly missing: string[];
}

/**
 * A group of load cases, each run in rounds that alternate between the fronts, and of figures that are taken otherwise,
 * after them.
 */
export function loadGroup(
  name: string,
  casesOf: (form: BenchForm) => LoadCase[],
  figuresOf: (bench: Bench, form: BenchForm, print: (line: string) => void) => Promise<Record<string, number>>,
): LoadGroup {
  return {
    name,
    async run(form, print) {
      const { bench, missing } = await openBench();
      if (bench === null) return { cases: {}, ratios: {}, figures: {}, missing };
      try {
        const measured = await runRounds(bench, casesOf(form), form === "short" ? 1 : 5);
        const figures = await figuresOf(bench, form, print);
        return { ...findings(measured), figures, missing };
      } finally {
        await bench.stub.stop();
      }
    },
  };
}

/** Opens what load groups share; null with the reason in `missing` where nothing can be measured. */
async function openBench(): Promise<{ bench: Bench | null; missing: string[] }> {
  const why = buildGenerator();
  if (why !== null) return { bench: null, missing: [why] };
  const cores = chooseCores();
  const missing = cores === null ? ["no core of its own for what is measured: one core, or no taskset"] : [];
  const present: Front[] = [];
  for (const front of fronts) {
    const reason = front.missing();
    if (reason === null) present.push(front);
    else missing.push(reason);
  }
  return { bench: { cores, stub: await startStub(cores?.rest ?? []), present, missing }, missing };
}

/** Runs the cases in rounds over all fronts; a front that can't be started or answers wrongly is named in `missing`. */
async function runRounds(bench: Bench, cases: readonly LoadCase[], rounds: number): Promise<Rounds> {
  const running = new Map<string, RunningFront>();
  const measured: Rounds = new Map();
  try {
    for (const front of bench.present) {
      await orMissing(bench, front.name, async () => {
        running.set(front.name, await front.start(bench.stub.address, bench.cores));
      });
    }
    for (let round = 0; round < rounds; round++) {
      for (const each of cases) {
        for (const [name, front] of running) {
          const well = await orMissing(bench, name, async () => {
            const got = await measureFront(front, bench.stub, bench.cores, each.drive);
            for (const reading of each.readings) push(measured, `${reading.name}/${name}`, { got, reading });
          });
          if (well) continue;
          await front.stop();
          running.delete(name);
        }
      }
    }
  } finally {
    await Promise.all([...running.values()].map((front) => front.stop()));
  }
  return measured;
}

export type Rounds = Map<string, { got: Measured; reading: Reading }[]>;

/** Cases, and their ratios to the yardstick's. */
export function findings(measured: Rounds): Pick<LoadFindings, "cases" | "ratios"> {
  const cases: Record<string, RoundsResult> = {};
  for (const [name, rounds] of measured)
    cases[name] = summarise(
      rounds.map(({ got }) => got),
      rounds[0]!.reading.value,
    );
  const ratios: Record<string, number> = {};
  for (const [name, { medianNs }] of Object.entries(cases)) {
    const at = name.lastIndexOf("/");
    const yardstick = cases[`${name.slice(0, at)}/${YARDSTICK}`];
    if (yardstick !== undefined && !name.endsWith(`/${YARDSTICK}`))
      ratios[`${name}-over-${YARDSTICK}`] = medianNs / yardstick.medianNs;
  }
  return { cases, ratios };
}

/** Runs `task`; false, with a line in `missing`, when it fails. */
async function orMissing(bench: Bench, name: string, task: () => Promise<void>): Promise<boolean> {
  try {
    await task();
    return true;
  } catch (error) {
    bench.missing.push(`${name}: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

function push<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

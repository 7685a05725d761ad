import type { RunningFront } from "../fronts/front.ts";
import { type CaseResult, median } from "../results.ts";
import type { Cores } from "./cores.ts";
import { type DriveOptions, type DriveReport, drive, type Stub } from "./generator.ts";

/** Interleaved rounds: in each every front is measured once, so that a bad minute of the machine falls on all. */

/** One window on one front. */
export interface Measured {
  readonly report: DriveReport;
  /** CPU time of the front in the window. */
  readonly frontCpuNs: number;
  /** Part of the front's core, and of the other ones, that processes other than ours took: 0 to 1. */
  readonly othersOnFront: number;
  readonly othersOnRest: number;
  /** Whether that was too much to trust the window. */
  readonly disturbed: boolean;
}

/**
 * What others may take of a core before a window counts as disturbed. CPU time per operation leaves their time out but not
 * what they do to the caches; times of the clock also hold what the generator and the stub had to wait for theirs.
 */
const DISTURBED_ON_FRONT = 0.15;
const DISTURBED_ON_REST = 0.3;

export type Drive = Omit<DriveOptions, "to" | "watch">;

export async function measureFront(
  front: RunningFront,
  stub: Stub,
  cores: Cores | null,
  options: Drive,
): Promise<Measured> {
  const watch = [front.pid, stub.pid, ...front.helpers];
  const report = await drive({ ...options, to: front.address, watch }, cores?.rest ?? []);
  if (report.errors > 0)
    throw new Error(`${report.errors} of ${report.requests} answers were errors, the first: ${report.error}`);
  return { report, ...judge(report, cores) };
}

/** @param report `processes` holds the front first; those after it and the generator ran on the rest of the cores */
export function judge(report: DriveReport, cores: Cores | null): Omit<Measured, "report"> {
  const { elapsedNs, coresBusyNs, processes, ownCpuNs } = report;
  const frontCpuNs = processes[0]!.cpuNs;
  const restCpuNs = processes.slice(1).reduce((sum, { cpuNs }) => sum + cpuNs, ownCpuNs);
  const busy = (which: readonly number[]) => which.reduce((sum, core) => sum + (coresBusyNs[core] ?? 0), 0);
  const others = (which: readonly number[], ownNs: number) =>
    Math.max(0, busy(which) - ownNs) / (elapsedNs * which.length);
  // What all share can't be told apart.
  if (cores === null || cores.front.some((core) => cores.rest.includes(core))) {
    const all = others(cores?.front ?? [...coresBusyNs.keys()], frontCpuNs + restCpuNs);
    return { frontCpuNs, othersOnFront: all, othersOnRest: all, disturbed: all > DISTURBED_ON_FRONT };
  }
  const othersOnFront = others(cores.front, frontCpuNs);
  const othersOnRest = others(cores.rest, restCpuNs);
  const disturbed = othersOnFront > DISTURBED_ON_FRONT || othersOnRest > DISTURBED_ON_REST;
  return { frontCpuNs, othersOnFront, othersOnRest, disturbed };
}

export interface RoundsResult extends CaseResult {
  /** Rounds in which others took the cores; only where the quiet ones were too few do they count. */
  readonly disturbed: number;
}

/** So few quiet rounds still make a median. */
const LEAST_QUIET = 3;

/** The median of the quiet rounds, or of all where fewer than three were quiet. */
export function summarise(rounds: readonly Measured[], value: (round: Measured) => number): RoundsResult {
  const quiet = rounds.filter((round) => !round.disturbed);
  const values = (quiet.length >= Math.min(LEAST_QUIET, rounds.length) ? quiet : rounds).map(value);
  const medianNs = median(values);
  const spreadNs = Math.max(...values.map((each) => Math.abs(each - medianNs)));
  return { medianNs, spreadNs, rounds: rounds.length, disturbed: rounds.length - quiet.length };
}

import type { LabRun } from "../lab.ts";
import { percentile } from "./percentile.ts";

/** Figures over time, at most `POINTS` of them. */
export interface Timeline {
  /** Ends of the intervals, s since the end of settling. */
  readonly atS: readonly number[];
  /** Of requests that came in the interval; null where none was answered. */
  readonly meanTtftMs: readonly (number | null)[];
  readonly p95E2eMs: readonly (number | null)[];
  /** By engine id: mean of the interval. */
  readonly utilisation: Readonly<Record<string, readonly number[]>>;
  /** Part of the keys that publications of the interval moved. */
  readonly moved: readonly number[];
}

const POINTS = 100;

/** @param answered rows that count */
export function seriesOf({ tally, fleet }: LabRun, answered: readonly number[], lastMs: number): Timeline {
  const { settleMs } = tally.workload;
  const stepMs = Math.max(1000, Math.ceil((lastMs - settleMs) / POINTS / 1000) * 1000);
  const count = Math.max(1, Math.ceil((lastMs - settleMs) / stepMs));
  const ttft: number[][] = Array.from({ length: count }, () => []);
  const e2e: number[][] = Array.from({ length: count }, () => []);
  for (const row of answered) {
    const at = Math.min(count - 1, Math.floor((tally.arrivedMs[row]! - settleMs) / stepMs));
    ttft[at]!.push(tally.ttftMs[row]!);
    e2e[at]!.push(tally.e2eMs[row]!);
  }
  const samples = ttft.map((_, index) =>
    tally.samples.filter(({ atMs }) => atMs > settleMs + index * stepMs && atMs <= settleMs + (index + 1) * stepMs),
  );
  const mean = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0) / list.length;
  return {
    atS: ttft.map((_, index) => ((index + 1) * stepMs) / 1000),
    meanTtftMs: ttft.map((list) => (list.length === 0 ? null : round(mean(list)))),
    p95E2eMs: e2e.map((list) => (list.length === 0 ? null : round(percentile(Float64Array.from(list).sort(), 95)))),
    utilisation: Object.fromEntries(
      fleet.engines.map(({ id }, e) => [
        id,
        samples.map((list) => (list.length === 0 ? 0 : round(mean(list.map(({ utilisation }) => utilisation[e]!)), 3))),
      ]),
    ),
    moved: samples.map((list) =>
      round(
        list.reduce((sum, { moved }) => sum + moved, 0),
        4,
      ),
    ),
  };
}

function round(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

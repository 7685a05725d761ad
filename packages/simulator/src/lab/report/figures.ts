import type { LabRun } from "../lab.ts";
import { ENDED } from "../tally.ts";
import { percentile } from "./percentile.ts";
import { seriesOf, type Timeline } from "./timeline.ts";

/** When an answer counts as good. */
export interface Slo {
  readonly ttftMs: number;
  /** Mean time between tokens of the answer. */
  readonly tbotMs: number;
}

/** Mean and percentiles of what was answered, ms; null where nothing was. */
export interface Spread {
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** What came of one policy's run, settling left out. */
export interface PolicyFigures {
  readonly policy: string;
  readonly does: string;
  readonly values: Readonly<Record<string, number>>;
  readonly requests: number;
  readonly ttft: Spread | null;
  readonly e2e: Spread | null;
  /** Answered within the objectives, requests/s and part of all. */
  readonly goodputRps: number;
  readonly goodPart: number;
  /** Cached ÷ all prompt tokens of answered requests. */
  readonly hitPart: number;
  /** Follow-ups that went to another engine than the turn before. */
  readonly movedPart: number;
  /** Answered by an engine of another region. */
  readonly crossRegionPart: number;
  readonly networkMs: number;
  readonly shedPart: number;
  readonly failedPart: number;
  /** Given up by the client, or not answered when the run was over. */
  readonly unansweredPart: number;
  /** Attempts of gateways beyond the first, and of clients, per request. */
  readonly retriesPerRequest: number;
  readonly clientRetriesPerRequest: number;
  /** Part of the fleet's keys that publications move in a minute; 0 for policies that publish no weights. */
  readonly churnPerMin: number;
  readonly reversalsPerMin: number;
  readonly preemptions: number;
  /** Mean by engine. */
  readonly utilisation: Readonly<Record<string, number>>;
  readonly timeline: Timeline;
  /** TTFT and E2E at each of `PERCENTILES`, ms. */
  readonly ttftCurve: readonly number[];
  readonly e2eCurve: readonly number[];
}

/** Where the curves of a report have points. */
export const PERCENTILES: readonly number[] = [
  ...Array.from({ length: 49 }, (_, index) => index * 2),
  97,
  98,
  99,
  99.5,
  99.9,
];

/** @param does what the policy does, in a sentence */
export function figuresOf(run: LabRun, policy: { name: string; does: string }, slo: Slo): PolicyFigures {
  const { tally, fleet, preemptions, values } = run;
  const { workload, ended, ttftMs, e2eMs, engine } = tally;
  const rows: number[] = [];
  let lastMs = workload.settleMs;
  for (let row = 0; row < workload.size; row++) {
    const atMs = tally.arrivedMs[row]!;
    if (!(atMs >= workload.settleMs)) continue;
    rows.push(row);
    lastMs = Math.max(lastMs, atMs);
  }
  const lastEngine = lastEngines(run);
  const answered = rows.filter((row) => ended[row] === ENDED.answered);
  const part = (count: number): number => (rows.length === 0 ? 0 : count / rows.length);
  const ofAnswered = (is: (row: number) => boolean): number =>
    answered.length === 0 ? 0 : answered.filter(is).length / answered.length;
  const sum = (list: readonly number[], of: (row: number) => number): number =>
    list.reduce((total, row) => total + of(row), 0);
  const good = answered.filter((row) => isGood(run, row, slo)).length;
  const followUps = answered.filter((row) => lastEngine[row]! >= 0);
  const minutes = Math.max(1, lastMs - workload.settleMs) / 60_000;
  const samples = tally.samples.filter(({ atMs }) => atMs > workload.settleMs && atMs <= lastMs);
  const [ttft, e2e] = [ttftMs, e2eMs].map((column) => Float64Array.from(answered, (row) => column[row]!).sort());
  return {
    policy: policy.name,
    does: policy.does,
    values,
    requests: rows.length,
    ttft: spreadOf(ttft!),
    e2e: spreadOf(e2e!),
    goodputRps: good / (minutes * 60),
    goodPart: part(good),
    hitPart:
      sum(answered, (row) => tally.cachedTokens[row]!) /
      Math.max(
        1,
        sum(answered, (row) => workload.promptTokens[row]!),
      ),
    movedPart:
      followUps.length === 0 ? 0 : followUps.filter((row) => lastEngine[row] !== engine[row]).length / followUps.length,
    crossRegionPart: ofAnswered((row) => isElsewhere(run, row)),
    networkMs: answered.length === 0 ? 0 : sum(answered, (row) => tally.networkMs[row]!) / answered.length,
    shedPart: part(rows.filter((row) => ended[row] === ENDED.shed).length),
    failedPart: part(rows.filter((row) => ended[row] === ENDED.failed).length),
    unansweredPart: part(rows.filter((row) => ended[row] === ENDED.gaveUp || ended[row] === ENDED.not).length),
    retriesPerRequest: part(sum(rows, (row) => Math.max(0, tally.attempts[row]! - tally.clientAttempts[row]!))),
    clientRetriesPerRequest: part(sum(rows, (row) => Math.max(0, tally.clientAttempts[row]! - 1))),
    churnPerMin: samples.reduce((total, { moved }) => total + moved, 0) / minutes,
    reversalsPerMin: samples.reduce((total, { reversals }) => total + reversals, 0) / minutes,
    preemptions,
    utilisation: Object.fromEntries(
      fleet.engines.map(({ id }, e) => [
        id,
        samples.reduce((total, { utilisation }) => total + utilisation[e]!, 0) / Math.max(1, samples.length),
      ]),
    ),
    timeline: seriesOf(run, answered, lastMs),
    ttftCurve: PERCENTILES.map((percent) => percentile(ttft!, percent)),
    e2eCurve: PERCENTILES.map((percent) => percentile(e2e!, percent)),
  };
}

function spreadOf(sorted: Float64Array): Spread | null {
  if (sorted.length === 0) return null;
  return {
    meanMs: sorted.reduce((total, each) => total + each, 0) / sorted.length,
    p50Ms: percentile(sorted, 50),
    p95Ms: percentile(sorted, 95),
    p99Ms: percentile(sorted, 99),
  };
}

function isGood({ tally }: LabRun, row: number, slo: Slo): boolean {
  const ttftMs = tally.ttftMs[row]!;
  const decodeMs = tally.e2eMs[row]! - ttftMs;
  return ttftMs <= slo.ttftMs && decodeMs <= slo.tbotMs * Math.max(1, tally.workload.outputTokens[row]!);
}

function isElsewhere({ tally, fleet }: LabRun, row: number): boolean {
  const name = tally.workload.clusters[tally.workload.cluster[row]!]!;
  const cluster = fleet.clusters.find((each) => each.name === name)!;
  return fleet.engines[tally.engine[row]!]!.region !== cluster.region;
}

/** Engine that answered the turn before of each request's conversation; −1 = none did. */
function lastEngines({ tally }: LabRun): Int16Array {
  const { workload, engine, ended, arrivedMs } = tally;
  const order = Uint32Array.from({ length: workload.size }, (_, row) => row);
  // Rows that waited for another come last in a workload, whenever they came.
  if (workload.previous.some((row) => row >= 0)) order.sort((a, b) => arrivedMs[a]! - arrivedMs[b]!);
  const last = new Map<number, number>();
  const before = new Int16Array(workload.size).fill(-1);
  for (const row of order) {
    if (ended[row] !== ENDED.answered) continue;
    const conversation = workload.conversation[row]!;
    before[row] = last.get(conversation) ?? -1;
    last.set(conversation, engine[row]!);
  }
  return before;
}

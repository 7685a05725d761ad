import { deploymentName, type LoadCurve, type LoadCurves, type LoadPoint } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";
import { prefillPart, rounded } from "./profile-figures.ts";
import type { LoggedRequest, RequestLog } from "./request-log.ts";
import { isLike, loadOfRun, type RunLoad, type Stretch } from "./run-load.ts";

/** Fewest requests of a load level. The mean of 20 is off by some 10 % where times spread by half of their mean. */
const LEVEL_REQUESTS = 20;
/** Loads that differ by no more than this part are one level. */
const SAME_LEVEL = 0.1;
/** Fewest for a 99th percentile. */
const P99_REQUESTS = 100;

/**
 * Load levels of a log, by curve (the requests of one deployment under one workload): stretches of steady load, those within a
 * tenth of each other taken together. Times are those of the mean request, so that levels with longer prompts or answers
 * compare: a TTFT is moved by what reading its other tokens takes, and the rate counts work, by token counts.
 */
export function curvesOfLog(log: RequestLog, stated: "open" | "closed" | null = null): LoadCurves {
  const left: Record<string, number> = { ...log.left };
  const leave = (why: string, count: number): void => {
    if (count > 0) left[why] = (left[why] ?? 0) + count;
  };
  let outside = 0;
  const groups = new Map<string, RunLoad[]>();
  const heads = new Map<string, { deployment: LoadCurve["deployment"]; workload: string }>();
  for (const run of log.runs) {
    const { deployment, workload } = run.group;
    const key = JSON.stringify([deploymentName(deployment), workload]);
    const load = loadOfRun(run, stated);
    outside += load.outside;
    groups.set(key, [...(groups.get(key) ?? []), load]);
    heads.set(key, { deployment, workload });
  }
  const curves = [...groups].flatMap(([key, runs]) => {
    const loop = mostly(runs);
    const levels = levelsOf(runs, loop);
    const enough = levels.filter((level) => countOf(level) >= LEVEL_REQUESTS);
    const total = (some: readonly Level[]): number => some.reduce((sum, level) => sum + countOf(level), 0);
    leave(`requests of load levels with fewer than ${LEVEL_REQUESTS}`, total(levels) - total(enough));
    const streamed = enough.filter(hasTimesBetweenTokens);
    leave("requests of load levels without a time between tokens", total(enough) - total(streamed));
    for (const { inFlight, requests } of shortLevels(runs, streamed)) {
      leave(
        `requests at about ${inFlight} in flight, too few beside others in one log: give each level its own`,
        requests,
      );
      outside -= requests;
    }
    return streamed.length === 0 ? [] : [curveOf(heads.get(key)!, loop, stated, streamed)];
  });
  leave("requests outside of a steady load", outside);
  return { curves, left };
}

/** Loads of a closed loop that stood still for too short a time to be levels, and that no level is near. */
function shortLevels(runs: readonly RunLoad[], levels: readonly Level[]) {
  const counts = new Map<number, number>();
  for (const stretch of runs.flatMap(({ short }) => short)) {
    if (levels.some((level) => isLike({ inFlight: inFlightOf(level) }, stretch))) continue;
    const inFlight = Math.round(stretch.inFlight);
    counts.set(inFlight, (counts.get(inFlight) ?? 0) + stretch.to - stretch.from);
  }
  return [...counts].map(([inFlight, requests]) => ({ inFlight, requests }));
}

type Level = readonly Stretch[];

function countOf(level: Level): number {
  return level.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** Answers of one token, or that came whole, say nothing of it. */
function hasTimesBetweenTokens(level: Level): boolean {
  for (const { outputTokens, ttftMs, e2eMs } of requestsOf(level)) if (outputTokens > 1 && e2eMs > ttftMs) return true;
  return false;
}

function spanMs(level: Level): number {
  return level.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
}

function inFlightOf(level: Level): number {
  return level.reduce((sum, { fromMs, toMs, inFlight }) => sum + inFlight * (toMs - fromMs), 0) / spanMs(level);
}

function mostly(runs: readonly RunLoad[]): "open" | "closed" {
  const closed = runs.filter(({ loop }) => loop === "closed").length;
  return 2 * closed > runs.length ? "closed" : "open";
}

/** Steady stretches by rising load, each taken together with those within a tenth above the least of them. */
function levelsOf(runs: readonly RunLoad[], loop: "open" | "closed"): Level[] {
  const loadOf = (level: Level): number => (loop === "closed" ? inFlightOf(level) : countOf(level) / spanMs(level));
  const pieces = runs
    .flatMap(({ steady }) => steady)
    .map((level) => ({ level, load: loadOf(level) }))
    .filter(({ level }) => countOf(level) > 0)
    .sort((a, b) => a.load - b.load);
  const levels: { stretches: Stretch[]; least: number }[] = [];
  for (const { level, load } of pieces) {
    const last = levels.at(-1);
    if (last !== undefined && load <= last.least * (1 + SAME_LEVEL)) last.stretches.push(...level);
    else levels.push({ stretches: [...level], least: load });
  }
  return levels.map(({ stretches }) => stretches);
}

function* requestsOf(level: Level): Generator<LoggedRequest> {
  for (const { run, order, from, to } of level) for (let place = from; place < to; place++) yield run.at(order[place]!);
}

function curveOf(
  { deployment, workload }: { readonly deployment: LoadCurve["deployment"]; readonly workload: string },
  loop: "open" | "closed",
  stated: "open" | "closed" | null,
  levels: readonly Level[],
): LoadCurve {
  const all = new Shape();
  for (const level of levels) for (const request of requestsOf(level)) all.add(request);
  const { readTokens, outputTokens } = all.means;
  const msPerTok = prefillSlope(levels);
  // Work of a request, in mean requests: first of all alike, then by what tokens cost at the rate that this says.
  const mean = { loop, readTokens, outputTokens, msPerTok };
  const first = levels.map((level) => pointOf(level, mean, () => 1));
  const mostRps = Math.max(...first.map(({ ratePerS }) => ratePerS));
  const part = prefillPart(readTokens, msPerTok ?? 0, mostRps);
  const work = (request: LoggedRequest): number =>
    (part * readOf(request)) / readTokens + ((1 - part) * request.outputTokens) / outputTokens;
  return {
    deployment,
    promptTokens: rounded(readTokens),
    outputTokens: rounded(outputTokens),
    loop,
    statistic: "mean",
    points: levels.map((level) => pointOf(level, mean, work)).sort((a, b) => a.inFlight - b.inFlight),
    source: workload,
    log: {
      requests: all.count,
      loop: stated === null ? "inferred" : "stated",
      cachedPart: rounded(all.cachedPart),
      prefillMsPerTok: msPerTok,
      promptTokens: all.range(0),
      outputTokens: all.range(1),
    },
  };
}

/** Tokens of the prompt that the engine had to read. */
function readOf({ promptTokens, cachedTokens }: LoggedRequest): number {
  return Math.max(1, promptTokens - cachedTokens);
}

/** Means and ranges of token counts. */
class Shape {
  count = 0;
  readonly #sums = { read: 0, output: 0, prompt: 0, cached: 0 };
  /** Counts by token count in steps of a hundredth, as logarithms: read and output. */
  readonly #steps = [new Map<number, number>(), new Map<number, number>()] as const;

  add(request: LoggedRequest): void {
    const { promptTokens, cachedTokens, outputTokens } = request;
    const read = readOf(request);
    this.count += 1;
    this.#sums.read += read;
    this.#sums.output += outputTokens;
    this.#sums.prompt += promptTokens;
    this.#sums.cached += cachedTokens;
    for (const [at, tokens] of [read, outputTokens].entries()) {
      const step = Math.round(Math.log(tokens) / STEP);
      const steps = this.#steps[at as 0 | 1];
      steps.set(step, (steps.get(step) ?? 0) + 1);
    }
  }

  get means(): { readonly readTokens: number; readonly outputTokens: number } {
    return { readTokens: this.#sums.read / this.count, outputTokens: this.#sums.output / this.count };
  }

  get cachedPart(): number {
    return this.#sums.prompt === 0 ? 0 : this.#sums.cached / this.#sums.prompt;
  }

  /** Between which nine of ten lie. */
  range(of: 0 | 1): { readonly from: number; readonly to: number } {
    const steps = [...this.#steps[of]].sort(([a], [b]) => a - b);
    const at = (part: number): number => {
      let below = 0;
      for (const [step, count] of steps) {
        below += count;
        if (below >= part * this.count) return Math.round(Math.exp(step * STEP));
      }
      return Math.round(Math.exp(steps.at(-1)![0] * STEP));
    };
    return { from: at(0.05), to: at(0.95) };
  }
}

const STEP = 0.01;

/**
 * What reading one more token takes, ms: by least squares of relative errors over the requests of the lower half of the levels,
 * where prompts queue least. Null where prompts are too alike to tell.
 */
function prefillSlope(levels: readonly Level[]): number | null {
  const rows: number[][] = [];
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const level of levels.slice(0, Math.ceil(levels.length / 2)))
    for (const request of requestsOf(level)) {
      if (rows.length === SLOPE_REQUESTS) break;
      const read = readOf(request);
      rows.push([1 / request.ttftMs, read / request.ttftMs]);
      [least, most] = [Math.min(least, read), Math.max(most, read)];
    }
  if (most < ALIKE * least) return null;
  const [, slope] = nonNegativeLeastSquares(rows);
  return slope! > 0 ? slope! : null;
}

const ALIKE = 1.2;
const SLOPE_REQUESTS = 20_000;

/** The request that a curve is of. */
interface MeanRequest {
  readonly loop: LoadCurve["loop"];
  readonly readTokens: number;
  readonly outputTokens: number;
  readonly msPerTok: number | null;
}

/** The point of a level for the mean request. */
function pointOf(
  level: Level,
  { loop, readTokens, outputTokens, msPerTok }: MeanRequest,
  work: (request: LoggedRequest) => number,
): LoadPoint {
  const ttftMs = new Float64Array(countOf(level));
  const sums = { work: 0, ttftMs: 0, decodeMs: 0, gaps: 0 };
  let at = 0;
  for (const request of requestsOf(level)) {
    const otherMs = (msPerTok ?? 0) * (readOf(request) - readTokens);
    const ownMs = Math.max(request.ttftMs - otherMs, LEAST_TTFT_PART * request.ttftMs);
    ttftMs[at++] = ownMs;
    sums.ttftMs += ownMs;
    sums.work += work(request);
    sums.decodeMs += request.e2eMs - request.ttftMs;
    sums.gaps += request.outputTokens - 1;
  }
  ttftMs.sort();
  const count = ttftMs.length;
  const quantile = (part: number): number => ttftMs[Math.ceil(part * count) - 1]!;
  const meanMs = sums.ttftMs / count;
  const tbotMs = sums.gaps > 0 ? sums.decodeMs / sums.gaps : 0;
  const sentPerS = (1000 * sums.work) / spanMs(level);
  const ratePerS = loop === "open" ? sentPerS * finishedPart(level) : sentPerS;
  return {
    // Of mean requests, by Little's law: what was in flight held other requests too.
    inFlight: (ratePerS * (meanMs + outputTokens * tbotMs)) / 1000,
    ratePerS,
    offeredPerS: loop === "open" ? sentPerS : null,
    ttftMs: meanMs,
    tbotMs,
    ttftP50Ms: quantile(0.5),
    ttftP99Ms: count < P99_REQUESTS ? null : quantile(0.99),
    requests: count,
  };
}

/**
 * Part of the requests sent that finish meanwhile, of an open loop. What is in flight comes and goes by chance, by its square
 * root; a lack beyond that is a queue that grows.
 */
function finishedPart(level: Level): number {
  const sent = countOf(level);
  const ended = level.reduce((sum, stretch) => sum + stretch.ended, 0);
  return sent - ended > 2 * Math.sqrt(inFlightOf(level)) ? ended / sent : 1;
}

/** Where a prompt's other length would explain more than all of its TTFT, so much of it is left. */
const LEAST_TTFT_PART = 0.1;

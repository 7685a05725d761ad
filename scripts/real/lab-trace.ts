import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Random, seededRandom } from "../../packages/core/src/index.ts";
import { readTrace, type Workload } from "../../packages/simulator/src/index.ts";
import type { Shape } from "./lab-sweep.ts";
import { poissonMs } from "./replay.ts";

/** Requests in order of time, whose sizes have the means of the reference request. */
export interface Trace {
  readonly name: string;
  readonly requests: readonly TraceRow[];
}

interface TraceRow extends Shape {
  readonly atMs: number;
}

export interface TraceLimits {
  readonly reference: Shape;
  /** Tokens of the shortest prompt that can be made. */
  readonly leastTokens: number;
}

/** Of a prompt and an answer together, what a slot of the engines holds, with something to spare. */
const MOST_TOKENS = { prompt: 1500, output: 400 };

/** A trace of any form that the lab reads, its sizes scaled down to what engines on a quarter of a core can do. */
export function recordedTrace(path: string, { reference, leastTokens }: TraceLimits): Trace {
  const bytes = readFileSync(path);
  const recorded = readTrace((path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8"), {
    name: basename(path),
    origins: [{ cluster: "all", part: 1, shiftHours: 0 }],
    requestClass: "chat",
    seed: 1,
    model: null,
    scale: 1,
    size: reference,
  });
  const rows = Array.from({ length: recorded.size }, (_, row) => row);
  const mean = (of: (row: number) => number) => rows.reduce((sum, row) => sum + of(row), 0) / rows.length;
  const prompt = (reference.promptTokens - leastTokens) / mean((row) => recorded.promptTokens[row]!);
  const output = reference.outputTokens / mean((row) => recorded.outputTokens[row]!);
  return {
    name: recorded.name,
    requests: rows.map((row) => ({
      atMs: recorded.atMs[row]!,
      promptTokens: within(leastTokens + recorded.promptTokens[row]! * prompt, leastTokens, MOST_TOKENS.prompt),
      outputTokens: within(recorded.outputTokens[row]! * output, 1, MOST_TOKENS.output),
    })),
  };
}

/** Poisson arrivals of log-normal sizes, for where no trace is. */
export function drawnTrace(seed: number, { reference, leastTokens }: TraceLimits): Trace {
  const random = seededRandom(seed);
  return {
    name: "Poisson arrivals, log-normal sizes",
    requests: poissonMs(DRAWN.rateRps, DRAWN.seconds, 1, random).map((atMs) => ({
      atMs,
      promptTokens: within(
        leastTokens + logNormal(reference.promptTokens - leastTokens, random),
        leastTokens,
        MOST_TOKENS.prompt,
      ),
      outputTokens: within(logNormal(reference.outputTokens, random), 1, MOST_TOKENS.output),
    })),
  };
}

const DRAWN = { rateRps: 10, seconds: 3600 };
/** Coefficient of variation of drawn sizes. */
const SPREAD = 0.6;

function logNormal(mean: number, random: Random): number {
  const variance = Math.log(1 + SPREAD * SPREAD);
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return mean * Math.exp(Math.sqrt(variance) * normal - variance / 2);
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(Math.round(value), least), most);
}

export interface Cut {
  readonly rateRps: number;
  readonly seconds: number;
  /** Part of the requests of each cluster. */
  readonly origins: Readonly<Record<string, number>>;
  readonly seed: number;
}

/** So much of a trace, its clock so fast that it has the rate, as the lab's own form of a trace. */
export function cutTrace({ requests }: Trace, { rateRps, seconds, origins, seed }: Cut): string {
  const random = seededRandom(seed);
  const taken = requests.slice(0, Math.round(rateRps * seconds));
  const speed = (taken.at(-1)!.atMs - taken[0]!.atMs) / (seconds * 1000);
  const rows = taken.map(({ atMs, promptTokens, outputTokens }, index) => {
    const cluster = clusterOf(origins, random());
    const atS = (atMs - taken[0]!.atMs) / speed / 1000;
    return [atS.toFixed(4), promptTokens, outputTokens, `s${index}`, cluster, "chat"].join(",");
  });
  return `t_s,prompt_tokens,output_tokens,session,cluster,class\n${rows.join("\n")}\n`;
}

function clusterOf(origins: Cut["origins"], draw: number): string {
  let left = draw;
  for (const [name, part] of Object.entries(origins)) {
    left -= part;
    if (left < 0) return name;
  }
  return Object.keys(origins).at(-1)!;
}

/** The lab's reading of what `cutTrace` wrote; what comes in the first seconds is not counted. */
export function workloadOfCut(text: string, settleSeconds: number): Workload {
  return readTrace(text, {
    name: "trace.csv",
    origins: [],
    requestClass: "chat",
    seed: 1,
    settleMs: settleSeconds * 1000,
    model: null,
    scale: 1,
    size: { promptTokens: 1, outputTokens: 1 },
  });
}

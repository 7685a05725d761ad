import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { seededRandom } from "../../packages/core/src/index.ts";
import type { LabEngines, RealEngine } from "./lab-engines.ts";
import { poissonMs, replay } from "./replay.ts";
import { StreamClient } from "./stream.ts";

/** Requests of one size. */
export interface Shape {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface SweepOptions {
  /** The reference request, then others, from which the fit tells what a prompt token and an output token cost. */
  readonly shapes: readonly Shape[];
  /** Of a level up to half load; beyond it in proportion to 1 ÷ (1 − load): the fuller an engine the longer chance lasts. */
  readonly seconds: number;
  readonly seed: number;
}

/**
 * Offered load of each level ÷ what the engine did with `CROWD` requests always under way. These fall into step and share
 * their batches, so that it is up to a third more than an engine holds of requests that come when they will: the last level
 * is about there, or beyond, and shows the capacity.
 */
const LEVELS: readonly number[] = [0.2, 0.35, 0.5, 0.65, 0.8];
/** Other shapes are measured more coarsely. */
const OTHER_LEVELS: readonly number[] = [0.25, 0.5, 0.75];
const CROWD = 4;
const CROWD_SECONDS = 5;
/** Of a level, however long that takes: with fewer the fit has none. */
const LEAST_REQUESTS = 25;

const HEAD = "engine,workload,run,start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms";

/**
 * Measures every engine at rising load, all at the same time: they run in turn, so none of them is slowed by the others, and
 * the caches of the core are as contended as when the fleet is in use. Requests come as a Poisson stream straight to the
 * engine. Writes a log of requests as `guidevane profile fit` takes it, level by level: those that are there are not measured
 * again.
 */
export async function sweep(lab: LabEngines, file: string, options: SweepOptions): Promise<void> {
  const random = seededRandom(options.seed);
  if (!existsSync(file)) writeFileSync(file, `${HEAD}\n`);
  for (const [index, shape] of options.shapes.entries()) {
    const runs = (index === 0 ? LEVELS : OTHER_LEVELS).map((level) => ({ level, run: `${index}-${level}` }));
    const missing = missingIn(file, lab, runs);
    if (missing.length === 0) continue;
    const crowds = await Promise.all(lab.engines.map((engine) => crowdRps(lab, engine, shape, CROWD_SECONDS)));
    for (const { level, run } of missing) {
      const seconds = options.seconds * Math.max(1, 1 / (2 * (1 - level)));
      const rows = lab.engines.map((engine, at) =>
        atRate(lab, engine, shape, { rateRps: level * crowds[at]!, seconds, run }, random),
      );
      appendFileSync(file, `${(await Promise.all(rows)).flat().join("\n")}\n`);
      console.error(
        `swept ${shape.promptTokens}x${shape.outputTokens} at ${level} of ${crowds.map((rps) => rps.toFixed(1)).join(", ")} requests/s`,
      );
    }
  }
}

/** Whether nothing of the sweep is left to be measured. */
export function isSwept(file: string, lab: Pick<LabEngines, "engines">, shapes: number): boolean {
  if (!existsSync(file)) return false;
  const runs = Array.from({ length: shapes }, (_, index) =>
    (index === 0 ? LEVELS : OTHER_LEVELS).map((level) => ({ run: `${index}-${level}` })),
  ).flat();
  return missingIn(file, lab, runs).length === 0;
}

function missingIn<Run extends { readonly run: string }>(
  file: string,
  { engines }: Pick<LabEngines, "engines">,
  runs: readonly Run[],
): Run[] {
  const done = new Set(
    readFileSync(file, "utf8")
      .split("\n")
      .map((row) => row.split(",")[2]),
  );
  return runs.filter(({ run }) => engines.some(({ id }) => !done.has(`${id}-${run}`)));
}

/** Answers/s with `CROWD` requests always under way. */
async function crowdRps(lab: LabEngines, { url }: RealEngine, shape: Shape, seconds: number): Promise<number> {
  const client = new StreamClient(url, false);
  const startMs = performance.now();
  let answers = 0;
  const one = async () => {
    while (performance.now() - startMs < seconds * 1000) {
      const { failure } = await client.ask(lab.prompts.body(shape.promptTokens, shape.outputTokens));
      if (failure !== null) throw new Error(`an engine's answer: ${failure}`);
      answers += 1;
    }
  };
  await Promise.all(Array.from({ length: CROWD }, one));
  return (1000 * answers) / (performance.now() - startMs);
}

/** One load level of one engine, as rows of the log. */
async function atRate(
  lab: LabEngines,
  { id, url }: RealEngine,
  { promptTokens, outputTokens }: Shape,
  { rateRps, seconds, run }: { readonly rateRps: number; readonly seconds: number; readonly run: string },
  random: () => number,
): Promise<string[]> {
  const client = new StreamClient(url, false);
  const times = poissonMs(rateRps, seconds, LEAST_REQUESTS, random);
  const plan = times.map((atMs) => ({ atMs, client, body: lab.prompts.body(promptTokens, outputTokens) }));
  const { answers } = await replay(plan);
  return answers.flatMap(({ failure, ttftMs, e2eMs }, at) => {
    if (failure !== null) {
      console.error(`${id} at ${rateRps.toFixed(1)} requests/s: ${failure}`);
      return [];
    }
    const numbers = [times[at]!, promptTokens, outputTokens, ttftMs, e2eMs].map((each) => Number(each.toFixed(2)));
    return [[id, `${promptTokens}x${outputTokens}`, `${id}-${run}`, ...numbers].join(",")];
  });
}

import { writeFileSync } from "node:fs";
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
  /** Of each load level. */
  readonly seconds: number;
  readonly seed: number;
}

/** Offered load of each level ÷ what the engine did with `CROWD` requests always under way. */
const LEVELS: readonly number[] = [0.2, 0.35, 0.5, 0.65, 0.8, 0.9];
/** Other shapes are measured more coarsely. */
const OTHER_LEVELS: readonly number[] = [0.25, 0.5, 0.8];
const CROWD = 4;
/** Of a level, however long that takes: with fewer the fit has none. */
const LEAST_REQUESTS = 25;

/**
 * Measures every engine at rising load, all at the same time: they run in turn, so none of them is slowed by the others, and
 * the caches of the core are as contended as when the fleet is in use. Requests come as a Poisson stream straight to the
 * engine. Writes a log of requests as `guidevane profile fit` takes it.
 */
export async function sweep(lab: LabEngines, file: string, options: SweepOptions): Promise<void> {
  const random = seededRandom(options.seed);
  const rows = ["engine,workload,run,start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms"];
  for (const [index, shape] of options.shapes.entries()) {
    const crowds = await Promise.all(lab.engines.map((engine) => crowdRps(lab, engine, shape, options.seconds / 4)));
    for (const level of index === 0 ? LEVELS : OTHER_LEVELS) {
      const runs = lab.engines.map((engine, at) =>
        atRate(
          lab,
          engine,
          shape,
          { rateRps: level * crowds[at]!, seconds: options.seconds, run: `${index}-${level}` },
          random,
        ),
      );
      rows.push(...(await Promise.all(runs)).flat());
      console.error(
        `swept ${shape.promptTokens}x${shape.outputTokens} at ${level} of ${crowds.map((rps) => rps.toFixed(1)).join(", ")} requests/s`,
      );
    }
  }
  writeFileSync(file, `${rows.join("\n")}\n`);
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

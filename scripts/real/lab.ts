import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readFleet, readProfile } from "../../packages/cli/src/read-fleet.ts";
import { workOf } from "../../packages/core/src/index.ts";
import { findPython } from "../../test/src/real/engines.ts";
import { root } from "../../test/src/repository.ts";
import { Whole } from "../../test/src/whole.ts";
import { goFirst, LabEngines, SIZES } from "./lab-engines.ts";
import { predict } from "./lab-predict.ts";
import { ORIGINS, type RealRun, runReal, writeFleet } from "./lab-run.ts";
import { isSwept, type Shape, sweep } from "./lab-sweep.ts";
import { compare } from "./lab-table.ts";
import { cutTrace, drawnTrace, recordedTrace, workloadOfCut } from "./lab-trace.ts";
import { sweepTrust } from "./lab-trust.ts";

/**
 * `node --conditions=@guidevane/source scripts/real/lab.ts FOLDER`: the lab's prediction beside a real fleet. Four llama.cpp
 * servers of different size are swept, profiles are fitted, and a trace is replayed in real time through a control plane and
 * gateways, and in the lab. Prints a table for each load; exit code 1 where a figure of the whole fleet is further off than
 * `--within` at a load below the knee. What is measured stays in FOLDER; levels and runs that are there are used.
 *
 * GUIDEVANE_PYTHON is a Python as the tests want it. Linux, and nothing else may run meanwhile; where something does, `--real-time`
 * puts all of this before it. Cores are kept awake but with `--let-sleep`, which is for a try where others want to work too.
 */

/** Offered work ÷ capacity up to which the prediction is judged. */
const KNEE = 0.7;
/** The mean request of the trace, and the reference of the profiles; the other shape is for what a token costs. */
const SHAPES: readonly [Shape, Shape] = [
  { promptTokens: 100, outputTokens: 16 },
  { promptTokens: 220, outputTokens: 8 },
];
const LAB_RUNS = 10;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    trace: { type: "string" },
    loads: { type: "string", default: "0.4,0.65" },
    seconds: { type: "string", default: "110" },
    settle: { type: "string", default: "10" },
    "level-seconds": { type: "string", default: "60" },
    within: { type: "string", default: "15" },
    seed: { type: "string", default: "1" },
    "real-time": { type: "boolean", default: false },
    "let-sleep": { type: "boolean", default: false },
  },
});
const seed = Number(flags.seed);
const settleSeconds = Number(flags.settle);
const found = findPython();
if ("missing" in found || positionals.length !== 1) {
  console.error(`lab.ts: ${"missing" in found ? found.missing : "name one folder for what is measured"}`);
  process.exitCode = 2;
} else {
  process.exitCode = await main(found.python, resolve(positionals[0]!));
}

async function main(python: string, folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  const files = filesIn(folder);
  const loads = flags.loads
    .split(",")
    .filter((text) => text !== "")
    .map(Number); // prettier-ignore
  const swept = isSwept(
    files.requests,
    { engines: SIZES.map(({ id, region }) => ({ id, region, url: "" })) },
    SHAPES.length,
  );
  const missing = !swept || loads.some((load) => !existsSync(files.atLoad(load).answers));
  if (missing && flags["real-time"]) goFirst();
  const lab = missing
    ? await LabEngines.start(python, seed, { keepAwake: !flags["let-sleep"], speed: knownSpeed(files) })
    : null;
  if (lab !== null) writeFileSync(files.speed, `${lab.speed}\n`);
  try {
    if (!swept) await sweep(lab!, files.requests, { shapes: SHAPES, seconds: Number(flags["level-seconds"]), seed });
    console.log(sweepTrust(readFileSync(files.requests, "utf8")));
    const profiles = fitProfiles(files);
    let isWithin = true;
    for (const load of loads) {
      if (!existsSync(files.atLoad(load).answers)) await measure(lab!, files, profiles, load);
      const worst = await report(files, load);
      if (load <= KNEE && !(100 * worst <= Number(flags.within))) isWithin = false;
    }
    return isWithin ? 0 : 1;
  } finally {
    const slow = await lab?.stop();
    if (slow !== undefined) console.error(`the core was too slow in ${(100 * slow).toFixed(1)} % of the time`);
  }
}

/** Of the engines whose figures are there. */
function knownSpeed({ speed }: Files): number {
  return existsSync(speed) ? Number(readFileSync(speed, "utf8")) : 0;
}

interface Files {
  readonly requests: string;
  readonly profiles: string;
  readonly speed: string;
  atLoad(load: number): { readonly trace: string; readonly fleet: string; readonly answers: string };
}

function filesIn(folder: string): Files {
  return {
    requests: join(folder, "requests.csv"),
    profiles: join(folder, "profiles"),
    speed: join(folder, "speed.txt"),
    atLoad: (load) => {
      const at = `${Math.round(100 * load)}`;
      return {
        trace: join(folder, `trace-${at}.csv`),
        fleet: join(folder, `fleet-${at}.json`),
        answers: join(folder, `answers-${at}.json`),
      };
    },
  };
}

/** Profile files by engine. */
function fitProfiles(files: Files): Map<string, string> {
  const cli = join(root, "packages/cli/src/main.ts");
  const args = ["profile", "fit", files.requests, "--loop", "open", "--out", files.profiles];
  process.stdout.write(execFileSync(process.execPath, ["--conditions=@guidevane/source", cli, ...args]));
  const names = readdirSync(files.profiles);
  const { promptTokens, outputTokens } = SHAPES[0];
  const isOf = (id: string) => (name: string) =>
    name.includes(id) && name.endsWith(`-${promptTokens}x${outputTokens}.yaml`);
  return new Map(SIZES.map(({ id }) => [id, join(files.profiles, names.find(isOf(id))!)]));
}

/** The trace in real time; leaves trace, fleet file and answers in their files. */
async function measure(
  lab: LabEngines,
  files: Files,
  profiles: ReadonlyMap<string, string>,
  load: number,
): Promise<void> {
  const limits = { reference: SHAPES[0], leastTokens: lab.prompts.leastTokens };
  const trace = flags.trace === undefined ? drawnTrace(seed, limits) : recordedTrace(flags.trace, limits);
  let rateRps = 0;
  for (const path of profiles.values()) {
    const profile = await readProfile(path);
    rateRps += (load * profile.capacityWps) / workOf(profile, SHAPES[0].promptTokens, SHAPES[0].outputTokens);
  }
  const { trace: traceFile, fleet, answers } = files.atLoad(load);
  const seconds = settleSeconds + Number(flags.seconds);
  writeFileSync(traceFile, cutTrace(trace, { rateRps, seconds, origins: ORIGINS, seed }));
  const workload = workloadOfCut(readFileSync(traceFile, "utf8"), settleSeconds);
  const whole = new Whole();
  try {
    writeFleet(whole, lab, profiles, workload, fleet);
    writeFileSync(answers, JSON.stringify(await runReal(whole, lab, workload)));
  } finally {
    await whole.stop();
  }
}

/** Prints what was seen beside what the lab says; the largest difference. */
async function report(files: Files, load: number): Promise<number> {
  const { trace, fleet, answers } = files.atLoad(load);
  const workload = workloadOfCut(readFileSync(trace, "utf8"), settleSeconds);
  const real = JSON.parse(readFileSync(answers, "utf8")) as RealRun;
  const predicted = predict(await readFleet(fleet), workload, LAB_RUNS);
  const ids = SIZES.map(({ id }) => id);
  const { table, worst } = compare(real.answers, predicted, ids);
  const rateRps = real.answers.length / (workload.atMs.at(-1)! / 1000 - settleSeconds);
  const failed = real.failures.length === 0 ? "none failed" : `${real.failures.length} failed: ${real.failures[0]}`;
  const late = `sent at most ${real.lateMs.toFixed(0)} ms late`;
  console.log(
    `\n${100 * load} % of the capacity, ${rateRps.toFixed(1)} answers/s, ${failed}, ${late}. Real / predicted.\n`,
  );
  console.log(table);
  return worst;
}

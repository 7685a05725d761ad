import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Fleet } from "@guidevane/core";
import type {
  ClientOptions,
  LabOptions,
  LabReport,
  PolicyDefinition,
  PolicyFigures,
  Workload,
} from "@guidevane/simulator";
import type { Command } from "commander";
import { parseCount } from "./address.ts";
import { badUsage } from "./exit-code.ts";
import { knownIn } from "./known-in.ts";
import { makeFolderOf } from "./own-folder.ts";
import { readFleet } from "./read-fleet.ts";
import { failureOf, numberFlag, originsOf } from "./simulate-flags.ts";
import { showProgress } from "./simulate-progress.ts";
import { showTable } from "./table.ts";

/** Four regions and nine engines of three sizes, shipped with this package. */
const LAB_FLEET = fileURLToPath(new URL("../fleets/lab/fleet.yaml", import.meta.url));

interface SimulateFlags {
  trace?: string;
  fleet: string;
  policy: string;
  out?: string;
  seed: string;
  seconds?: string;
  load?: string;
  speed: string;
  scale: string;
  model?: string;
  origin?: string[];
  class?: string;
  settle: string;
  fail?: string[];
  timeout: string;
  attempts: string;
  gateways: string;
  kvTokens: string;
  signalEvery: string;
  snapshotDelay: string;
  sloTtft: string;
  sloTbot: string;
  asFiled?: true;
  tune?: true;
  json?: true;
}

export function addSimulate(program: Command): void {
  program
    .command("simulate")
    .description("replay a trace, or synthetic conversations, against a fleet under every policy, and compare")
    .option(
      "--trace <file>",
      "Azure, Mooncake, agentic sessions, ServeGen rates or one's own; .gz too (default: synthetic)",
    )
    .option("--fleet <file>", "fleet file", LAB_FLEET)
    .option("--policy <names>", "all, or names with commas between", "all")
    .option("--out <file.html>", "write the report, and its figures as JSON beside it; its folder is made")
    .option("--seed <n>", "seed of everything drawn", "1")
    .option("--seconds <s>", "how much of it (default: 300, a trace: all)")
    .option("--load <part>", "offered work ÷ capacity of synthetic conversations (default: the fleet file's demandRps)")
    .option("--speed <factor>", "run a trace's clock so much faster", "1")
    .option("--scale <factor>", "times a trace's rates, for traces of rates only", "1")
    .option("--model <name>", "of a trace of rates: which model's (default: the first)")
    .option("--origin <cluster=part@hours...>", "where a trace's conversations come from, and its time shift there")
    .option("--class <name>", "class of a trace's requests (default: the fleet file's first)")
    .option("--settle <s>", "of a trace: what is simulated and not counted at its start", "0")
    .option("--fail <what...>", "what goes wrong, s: death:ENGINE:AT:FOR, region:…, slowdown:ENGINE:AT:FOR:FACTOR, …")
    .option("--timeout <s>", "clients give up after so long without a first token; 0 = never", "0")
    .option("--attempts <n>", "of a client in all", "1")
    .option("--gateways <n>", "gateways of each cluster", "2")
    .option("--kv-tokens <n>", "KV memory of one replica", "1000000")
    .option("--signal-every <s>", "between two polls of an engine", "1")
    .option("--snapshot-delay <s>", "from publication to gateways", "0.5")
    .option("--slo-ttft <ms>", "a good answer's TTFT", "1000")
    .option("--slo-tbot <ms>", "a good answer's time between tokens", "40")
    .option("--as-filed", "leave classes and demand as the fleet file has them, whatever a trace's requests are like")
    .option("--tune", "try each policy's grid on another seed's requests first")
    .option("--json", "print the report as JSON")
    .action((flags: SimulateFlags, command: Command) => simulate(flags, commandLine(command)));
}

async function simulate(flags: SimulateFlags, command: string): Promise<void> {
  const lab = await import("@guidevane/simulator");
  const filed = await readFleet(flags.fleet);
  const policies = policiesOf(lab.POLICIES, flags.policy);
  const seed = parseCount("--seed", flags.seed);
  const workload = await workloadFor(lab, flags, filed, seed);
  const isDescribed = flags.trace !== undefined && !flags.asFiled;
  const fleet = isDescribed ? lab.describedBy(filed, workload) : filed;
  const options = runOptions(flags, fleet, workload, seed);
  const slo = {
    ttftMs: numberFlag("--slo-ttft", flags.sloTtft, 1),
    tbotMs: numberFlag("--slo-tbot", flags.sloTbot, 0.1),
  };
  if (flags.out !== undefined) makeFolderOf("--out", flags.out);
  process.stderr.write(`${workload.name}: ${workload.size} requests, seed ${seed}\n`);
  // Tuned on other requests than those compared on, so that no policy has seen the examination.
  const practice = flags.tune ? { ...options, workload: await workloadFor(lab, flags, filed, seed + 1000) } : null;

  const figures: PolicyFigures[] = [];
  for (const [index, policy] of policies.entries()) {
    const progress = showProgress(policy.name, index, policies.length);
    const values = practice === null ? {} : lab.tune({ ...practice, policy });
    figures.push(lab.figuresOf(lab.runLab({ ...options, policy, values, onProgress: progress.at }), policy, slo));
    progress.done();
  }
  const conditions = [
    ...(isDescribed ? ["policies know the classes by the trace's own means, caches without end"] : []),
    ...(flags.fail ?? []),
    ...(options.client!.timeoutMs > 0 ? [`clients give up after ${flags.timeout} s, ${flags.attempts} attempts`] : []),
    `${flags.gateways} gateways a cluster, ${flags.kvTokens} tokens of KV memory a replica`,
    `signals every ${flags.signalEvery} s, publications arrive after ${flags.snapshotDelay} s`,
    flags.tune ? "each policy tuned by its grid on another seed" : "each policy at its defaults",
  ];
  const report = lab.reportOf({ command, fleet: basename(flags.fleet), seed, slo, conditions, workload }, figures);
  if (flags.out !== undefined) {
    await writeFile(flags.out, lab.reportPage(report));
    await writeFile(`${flags.out.replace(/\.html$/, "")}.json`, `${JSON.stringify(report)}\n`);
  }
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : showReport(report, flags.out));
}

function runOptions(flags: SimulateFlags, fleet: Fleet, workload: Workload, seed: number): Omit<LabOptions, "policy"> {
  const client: ClientOptions = {
    timeoutMs: 1000 * numberFlag("--timeout", flags.timeout, 0),
    cancels: true,
    attempts: Math.max(1, parseCount("--attempts", flags.attempts)),
    backoffMs: 1000,
  };
  return {
    fleet,
    workload,
    seed,
    gatewaysPerCluster: Math.max(1, parseCount("--gateways", flags.gateways)),
    kvTokens: numberFlag("--kv-tokens", flags.kvTokens, 1),
    signals: { everyMs: 1000 * numberFlag("--signal-every", flags.signalEvery, 0.001), delayMs: 100 },
    snapshotDelayMs: 1000 * numberFlag("--snapshot-delay", flags.snapshotDelay, 0),
    client,
    failures: (flags.fail ?? []).map((text) => failureOf(text, workload.settleMs)),
  };
}

/** They mean nothing for conversations that are made up. */
const TRACE_FLAGS = ["origin", "class", "model"] as const;

async function workloadFor(
  lab: typeof import("@guidevane/simulator"),
  flags: SimulateFlags,
  fleet: Fleet,
  seed: number,
): Promise<Workload> {
  const seconds = flags.seconds === undefined ? undefined : numberFlag("--seconds", flags.seconds, 1);
  if (flags.trace === undefined) {
    const idle = TRACE_FLAGS.find((name) => flags[name] !== undefined);
    if (idle !== undefined) badUsage(`--${idle}`, undefined, "says something of a trace, and there is no --trace");
    const load = flags.load === undefined ? {} : { load: numberFlag("--load", flags.load, 0.001) };
    return lab.syntheticWorkload({ fleet, seed, seconds: seconds ?? DEFAULT_SECONDS, ...load });
  }
  const requestClass = flags.class ?? [...fleet.classes.keys()][0]!;
  const spec = knownIn("--class", requestClass, "a class", fleet.classes);
  return lab.readTrace(await readText(flags.trace), {
    name: basename(flags.trace),
    origins: originsOf(fleet, flags.origin),
    requestClass,
    seed,
    speed: numberFlag("--speed", flags.speed, 0.001),
    settleMs: 1000 * numberFlag("--settle", flags.settle, 0),
    model: flags.model ?? null,
    scale: numberFlag("--scale", flags.scale, 0),
    fleet: {
      name: flags.fleet === LAB_FLEET ? "the lab's own fleet (--fleet names another)" : flags.fleet,
      clusters: [...fleet.clusters.keys()],
      classes: [...fleet.classes.keys()],
    },
    size: { promptTokens: spec.promptTokens, outputTokens: spec.outputTokens },
    ...(seconds === undefined ? {} : { seconds }),
  });
}

const DEFAULT_SECONDS = 300;

async function readText(path: string): Promise<string> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    return badUsage("--trace", path, `can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
  }
  return (path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
}

/** @throws GuidevaneError `bad_usage` for a name that is none */
function policiesOf(all: readonly PolicyDefinition[], names: string): PolicyDefinition[] {
  if (names === "all") return [...all];
  return names.split(",").map((name) => {
    const found = all.find((each) => each.name === name.trim());
    return found ?? badUsage("--policy", name, `is none of all, ${all.map((each) => each.name).join(", ")}`);
  });
}

/** As it could be typed again. */
function commandLine({ rawArgs }: Command & { rawArgs?: string[] }): string {
  const args = rawArgs ?? process.argv.slice(2);
  return ["guidevane", ...args.slice(args.indexOf("simulate"))]
    .map((word) => (/[\s*]/.test(word) ? `'${word}'` : word))
    .join(" ");
}

function showReport({ policies, verdict, slo }: LabReport, out: string | undefined): string {
  const head = [
    "policy",
    "TTFT ms",
    "p99",
    "E2E ms",
    "p95",
    "p99",
    "good %",
    "hits %",
    "cross %",
    "churn/min %",
    "lost %",
  ];
  const show = (value: number | undefined): string => (value === undefined ? "–" : value.toFixed(0));
  const percent = (part: number): string => (100 * part).toFixed(1);
  const rows = policies.map((each) => [
    each.policy,
    show(each.ttft?.meanMs),
    show(each.ttft?.p99Ms),
    show(each.e2e?.meanMs),
    show(each.e2e?.p95Ms),
    show(each.e2e?.p99Ms),
    percent(each.goodPart),
    percent(each.hitPart),
    percent(each.crossRegionPart),
    percent(each.churnPerMin),
    percent(each.shedPart + each.failedPart + each.unansweredPart),
  ]);
  const where = out === undefined ? "" : `\nReport: ${out}\n`;
  return `${showTable(head, rows)}\nGood: TTFT ≤ ${slo.ttftMs} ms and ≤ ${slo.tbotMs} ms a token.\n\n${verdict}\n${where}`;
}

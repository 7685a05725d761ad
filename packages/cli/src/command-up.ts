import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { parsePort, parseThreads } from "./address.ts";
import { bringUp, local, type UpOutcome, type UpRun } from "./bring-up.ts";
import { ChildGroup } from "./child-group.ts";
import { badUsage, CommandFailure } from "./exit-code.ts";
import { type StopReason, untilStopped } from "./process-life.ts";
import { readFleet, readInput } from "./read-fleet.ts";
import { DEFAULT_FLEET, rewriteFleet, scaleFactor } from "./up-fleet.ts";
import { planPorts, takenPorts } from "./up-ports.ts";
import { curlLine, showLater, showUp } from "./up-text.ts";

interface UpFlags {
  fleet?: string;
  demand: string;
  port: string;
  threads: string;
  scale?: string;
  json?: true;
}

export function addUp(program: Command): void {
  program
    .command("up")
    .description(
      "bring up a whole fleet on this machine: control plane, gateways, emulated engines, demand; Ctrl-C ends it",
    )
    .option("--fleet <file>", "fleet file whose engines are emulated (default: the three-cluster example)")
    .option("--demand <talk|none>", "drive the fleet file's demandRps as conversations, or nothing", "talk")
    .option(
      "--port <port>",
      "the first gateway's port; +1 … are the others', +90 control's, +100 … admin, +200 … engines",
      "8080",
    )
    .option(
      "--scale <part>",
      "take this part of the fleet file's capacities and demand, above 0, at most 1 (default: what this machine's cores carry)",
    )
    .option("--json", "print what the table has as one line of JSON")
    .option("--threads <n>", "threads of each gateway that serve requests", "1")
    .action((flags: UpFlags) => up(flags));
}

async function up(flags: UpFlags): Promise<void> {
  const threads = parseThreads("--threads", flags.threads);
  if (flags.demand !== "talk" && flags.demand !== "none") badUsage("--demand", flags.demand, "must be talk or none");
  const file = flags.fleet ?? DEFAULT_FLEET;
  const asked = await readFleet(file);
  const factor =
    flags.scale === undefined ? scaleFactor(asked, availableParallelism()) : parseScale("--scale", flags.scale);
  const ports = planPorts(asked, parsePort("--port", flags.port));
  const taken = await takenPorts(ports);
  if (taken.length > 0)
    throw new CommandFailure(
      `port ${taken.join(", ")} is in use by another program; try --port N (npm start -- --port N)`,
    );

  const stopped = untilStopped();
  const folder = await mkdtemp(join(tmpdir(), "guidevane-"));
  const group = new ChildGroup();
  try {
    const fleetFile = join(folder, "fleet.yaml");
    await writeFile(fleetFile, rewriteFleet(await readInput("fleet file", file), file, asked, ports, factor));
    const run: UpRun = {
      fleet: await readFleet(fleetFile),
      fleetFile,
      folder,
      ports,
      group,
      talk: flags.demand === "talk",
      threads,
    };
    if (!flags.json) process.stdout.write(showStart(run, factor, flags.scale === undefined));
    const end = await untilEnd(
      stopped,
      group,
      bringUp(run).then((outcome) => show(run, outcome, flags.json ?? false)),
    );
    if (end.broken !== null) throw new CommandFailure(end.broken);
  } finally {
    await group.stop(STOP_MS);
    await rm(folder, { recursive: true, force: true });
  }
}

/** The children are given this long to end what they do; the rest of five seconds is for the system. */
const STOP_MS = 4500;
/** Waits for Ctrl-C or for a child's unwanted end, whichever is first; `work` goes on meanwhile, and its failure counts. */
async function untilEnd(
  stopped: Promise<StopReason>,
  group: ChildGroup,
  work: Promise<unknown>,
): Promise<{ broken: string | null }> {
  const broken = group.broken.then((why) => ({ broken: why }));
  const ended = Promise.race([stopped.then(() => ({ broken: null })), broken]);
  // A child that dies also fails whoever was talking to it, often before its end is known; its end is what to tell.
  const worked = work.catch((error: unknown) =>
    Promise.race([ended, delay(CHILD_END_MS).then(() => Promise.reject(error))]),
  );
  return Promise.race([ended, worked.then(() => ended)]);
}

const CHILD_END_MS = 500;

async function show(run: UpRun, outcome: UpOutcome, json: boolean): Promise<void> {
  process.stdout.write(json ? upJson(run, outcome) : upText(run, outcome));
  if (!json && outcome.later !== null) process.stdout.write(`\n${showLater(await outcome.later)}\n`);
}

function upText(run: UpRun, { measure, nearest, router }: UpOutcome): string {
  const { cluster, url, model } = whatToTry(run);
  const table = showUp(measure, nearest, router);
  return `\n${table}\nTry one, by cluster ${cluster}'s gateway:\n\n  ${curlLine(url, model)}\n\nCtrl-C ends it.\n`;
}

function upJson(run: UpRun, { measure, nearest, router }: UpOutcome): string {
  const cells = measure.cells.map((cell) => ({ ...cell, engines: Object.fromEntries(cell.engines) }));
  const gateways = Object.fromEntries([...run.ports.gateways].map(([cluster, port]) => [cluster, local(port)]));
  const control = local(run.ports.control);
  return `${JSON.stringify({ ...measure, cells, nearestOnly: nearest, router, gateways, control })}\n`;
}

/** The second cluster where there is one: in the example it is the one whose traffic is split. */
function whatToTry({ fleet, ports }: UpRun): { cluster: string; url: string; model: string } {
  const [first, second] = fleet.clusters.keys();
  const cluster = second ?? first!;
  const [engine] = fleet.engines.values();
  const [spec] = fleet.classes.values();
  return { cluster, url: local(ports.gateways.get(cluster)!), model: spec?.model ?? engine!.models[0]! };
}

/** A part, above 0. @throws GuidevaneError `bad_usage` */
function parseScale(flag: string, text: string): number {
  const part = /^(0?\.\d{1,6}|1)$/.test(text) ? Number(text) : 0;
  return part > 0 ? part : badUsage(flag, text, "must be above 0 and at most 1");
}

function showStart({ fleet, ports, talk }: UpRun, factor: number, byCores: boolean): string {
  const lines = [
    `${fleet.engines.size} emulated engines, ${fleet.clusters.size} gateways and a control plane on this machine.`,
  ];
  if (factor < 1)
    lines.push(
      `Capacities and demand are the fleet file's times ${factor}${byCores ? `, which is what ${availableParallelism()} cores carry` : ""}.`,
    );
  for (const [cluster, port] of ports.gateways)
    lines.push(`  gateway ${cluster}  ${local(port)}  (admin ${local(ports.gatewayAdmins.get(cluster)!)})`);
  lines.push(`  control    ${local(ports.control)}`);
  for (const [engine, port] of ports.engines) lines.push(`  ${engine}   ${local(port)}`);
  if (talk) lines.push("Demand is being driven; the table comes in some ten seconds.");
  return `${lines.join("\n")}\n`;
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Fleet } from "@guidevane/core";
import type { DriveReport } from "@guidevane/simulator";
import type { Command } from "commander";
import { parsePort } from "./address.ts";
import { ChildGroup } from "./child-group.ts";
import { badUsage, CommandFailure } from "./exit-code.ts";
import { nearestOnly } from "./nearest-only.ts";
import { type StopReason, untilStopped } from "./process-life.ts";
import { readFleet, readInput } from "./read-fleet.ts";
import { DEFAULT_FLEET, rewriteFleet, scaleFactor } from "./up-fleet.ts";
import { fetchSnapshots, UpMeasurement } from "./up-measure.ts";
import { planPorts, takenPorts, type UpPorts } from "./up-ports.ts";
import { curlLine, showUp } from "./up-text.ts";

interface UpFlags {
  fleet?: string;
  demand: string;
  port: string;
  threads?: string;
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
    .option("--threads <n>", "request threads of each gateway (not supported yet)")
    .action((flags: UpFlags) => up(flags));
}

async function up(flags: UpFlags): Promise<void> {
  if (flags.threads !== undefined) badUsage("--threads", flags.threads, "is not supported yet");
  if (flags.demand !== "talk" && flags.demand !== "none") badUsage("--demand", flags.demand, "must be talk or none");
  const file = flags.fleet ?? DEFAULT_FLEET;
  const asked = await readFleet(file);
  const ports = planPorts(asked, parsePort("--port", flags.port));
  const taken = await takenPorts(ports);
  if (taken.length > 0) throw new CommandFailure(`port ${taken.join(", ")} is in use by another program; try --port`);

  const factor = scaleFactor(asked, availableParallelism());
  const folder = await mkdtemp(join(tmpdir(), "guidevane-"));
  const stopped = untilStopped();
  const group = new ChildGroup();
  try {
    const fleetFile = join(folder, "fleet.yaml");
    await writeFile(fleetFile, rewriteFleet(await readInput("fleet file", file), file, asked, ports, factor));
    const run: Run = {
      fleet: await readFleet(fleetFile),
      fleetFile,
      folder,
      ports,
      group,
      talk: flags.demand === "talk",
    };
    process.stdout.write(showStart(run, factor));
    const end = await untilEnd(stopped, group, bringUp(run));
    if (end.broken !== null) throw new CommandFailure(end.broken);
  } finally {
    await group.stop(STOP_MS);
    await rm(folder, { recursive: true, force: true });
  }
}

/** The children are given this long to end what they do; the rest of five seconds is for the system. */
const STOP_MS = 4500;
const FIRST_SNAPSHOT_MS = 30_000;
/** Seconds of traffic before measuring: the gateways' first reports, and a tick on them. */
const WARM_UP_REPORTS = 3;
const MEASURED_REPORTS = 5;

interface Run {
  /** As this run's processes see it: scaled, with its ports. */
  readonly fleet: Fleet;
  readonly fleetFile: string;
  readonly folder: string;
  readonly ports: UpPorts;
  readonly group: ChildGroup;
  readonly talk: boolean;
}

/** Waits for Ctrl-C or for a child's unwanted end, whichever is first; `work` goes on meanwhile, and its failure counts. */
async function untilEnd(
  stopped: Promise<StopReason>,
  group: ChildGroup,
  work: Promise<void>,
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

async function bringUp(run: Run): Promise<void> {
  const { fleet, ports, group } = run;
  const env = { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? "warn" };
  const controlUrl = local(ports.control);
  const common = ["--fleet", run.fleetFile];
  const store = join(run.folder, "store");
  // Gateways that start before there is a control plane to ask would complain of it.
  const first = [
    group.start({ name: "emulate", tier: 0 }, ["emulate", ...common], env),
    group.start(
      { name: "control", tier: 0 },
      ["control", ...common, "--admin", address(ports.control), "--store", store],
      env,
    ),
  ];
  await Promise.all(first.map((child) => child.ready));
  const gateways = [...fleet.clusters.keys()].map((cluster) => {
    const args = ["gateway", "--cluster", cluster, ...common, "--control", controlUrl];
    args.push("--state", join(run.folder, `gateway-${cluster}`), "--listen", address(ports.gateways.get(cluster)!));
    args.push("--admin", address(ports.gatewayAdmins.get(cluster)!));
    return group.start({ name: `gateway ${cluster}`, tier: 1 }, args, env);
  });

  const measurement = new UpMeasurement(fleet);
  const snapshots = () => fetchSnapshots(controlUrl, fleet.clusters.keys(), process.env.GUIDEVANE_ADMIN_TOKEN);
  const driven = run.talk && [...fleet.demandRps.values()].some((byClass) => byClass.size > 0);
  // The driver waits for each gateway by itself.
  if (driven) await measureDriven(run, env, measurement, snapshots);
  await Promise.all(gateways.map((child) => child.ready));
  if (!driven) measurement.addSnapshots(await firstSnapshots(snapshots));

  const [firstCluster] = fleet.clusters.keys();
  const tried = [...fleet.clusters.keys()][1] ?? firstCluster!;
  const [engine] = fleet.engines.values();
  const model = [...fleet.classes.values()][0]?.model ?? engine!.models[0]!;
  process.stdout.write(
    `\n${showUp(measurement.result(), nearestOnly(fleet, fleet.demandRps), await routerKind(run))}\nTry one, by cluster ${tried}'s gateway:\n\n  ${curlLine(local(ports.gateways.get(tried)!), model)}\n\nCtrl-C ends it.\n`,
  );
}

type FetchSnapshots = () => ReturnType<typeof fetchSnapshots>;

/** Starts the driver and collects its reports and the snapshots in force, until there is enough to show. */
function measureDriven(
  run: Run,
  env: NodeJS.ProcessEnv,
  measurement: UpMeasurement,
  snapshots: FetchSnapshots,
): Promise<void> {
  const args = ["drive", "--fleet", run.fleetFile, "--json", "--every", "1"];
  for (const [cluster, port] of run.ports.gateways) args.push("--gateway", `${cluster}=${local(port)}`);
  return new Promise((resolve, reject) => {
    let warm = 0;
    let measured = 0;
    let waiting = false;
    const giveUpMs = performance.now() + FIRST_SNAPSHOT_MS;
    run.group.start({ name: "drive", tier: 2 }, args, env, (line) => {
      const report = JSON.parse(line) as DriveReport;
      if (measured >= MEASURED_REPORTS || waiting || report.cells.every(({ sent }) => sent === 0)) return;
      warm += 1;
      if (warm <= WARM_UP_REPORTS) return;
      waiting = true;
      snapshots().then((found) => {
        waiting = false;
        if (found === null) {
          if (performance.now() > giveUpMs) reject(noSnapshot());
          return;
        }
        measurement.addSnapshots(found);
        measurement.addReport(report);
        measured += 1;
        if (measured === MEASURED_REPORTS) resolve();
      }, reject);
    });
  });
}

/** Waits for the first publication by asking again every 200 ms. */
async function firstSnapshots(snapshots: FetchSnapshots): Promise<NonNullable<Awaited<ReturnType<FetchSnapshots>>>> {
  const endMs = performance.now() + FIRST_SNAPSHOT_MS;
  for (;;) {
    const found = await snapshots();
    if (found !== null) return found;
    if (performance.now() > endMs) throw noSnapshot();
    await delay(200);
  }
}

function noSnapshot(): CommandFailure {
  return new CommandFailure(`no snapshot was published within ${FIRST_SNAPSHOT_MS / 1000} s; LOG_LEVEL=info shows why`);
}

/** What the gateways route with, by their own gauge. */
async function routerKind({ ports }: Run): Promise<string> {
  const token = process.env.GUIDEVANE_ADMIN_TOKEN;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const pages = [...ports.gatewayAdmins.values()].map(async (port) => {
    const response = await fetch(`${local(port)}/metrics`, { headers });
    return response.text();
  });
  const native = (await Promise.all(pages)).map((page) => /^guidevane_native(?:\{[^}]*\})? 1$/m.test(page));
  if (native.every(Boolean)) return "native";
  return native.some(Boolean) ? "native in some gateways, TypeScript in others" : "TypeScript (the addon is not built)";
}

function showStart({ fleet, ports, talk }: Run, factor: number): string {
  const lines = [
    `${fleet.engines.size} emulated engines, ${fleet.clusters.size} gateways and a control plane on this machine.`,
  ];
  if (factor < 1)
    lines.push(
      `Capacities and demand are the fleet file's times ${factor}, which is what ${availableParallelism()} cores carry.`,
    );
  for (const [cluster, port] of ports.gateways)
    lines.push(`  gateway ${cluster}  ${local(port)}  (admin ${local(ports.gatewayAdmins.get(cluster)!)})`);
  lines.push(`  control    ${local(ports.control)}`);
  for (const [engine, port] of ports.engines) lines.push(`  ${engine}   ${local(port)}`);
  if (talk) lines.push("Demand is being driven; the table comes in some ten seconds.");
  return `${lines.join("\n")}\n`;
}

function local(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function address(port: number): string {
  return `127.0.0.1:${port}`;
}

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ClusterSnapshot, Fleet } from "@guidevane/core";
import { type NearestOnly, nearestOnly } from "@guidevane/optimizer";
import type { DriveReport } from "@guidevane/simulator";
import type { ChildGroup } from "./child-group.ts";
import { CommandFailure } from "./exit-code.ts";
import { fetchAnswer } from "./fetch-answer.ts";
import { planInputs } from "./plan-inputs.ts";
import { fetchSnapshots, type UpMeasure, UpMeasurement } from "./up-measure.ts";
import type { UpPorts } from "./up-ports.ts";

/** One run of `guidevane up`. */
export interface UpRun {
  /** As this run's processes see it: scaled, with its ports. */
  readonly fleet: Fleet;
  readonly fleetFile: string;
  readonly folder: string;
  readonly ports: UpPorts;
  readonly group: ChildGroup;
  readonly talk: boolean;
  /** Of each gateway. */
  readonly threads: number;
}

/** What a run shows when it stands. */
export interface UpOutcome {
  readonly measure: UpMeasure;
  /** Of the same run when it has gone on for longer; null where nothing is driven. */
  readonly later: Promise<UpMeasure> | null;
  readonly nearest: NearestOnly;
  /** What the gateways route with. */
  readonly router: string;
}

/** Starts everything, drives it, and resolves with what was measured once traffic has settled on the weights. */
export async function bringUp(run: UpRun): Promise<UpOutcome> {
  const { fleet, ports, group } = run;
  const env = { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? "warn" };
  const controlUrl = local(ports.control);
  const common = ["--fleet", run.fleetFile];
  const store = join(run.folder, "store");
  // They load side by side; but a control plane that asks engines before they listen would complain of them, and gateways of it.
  const engines = group.start({ name: "emulate", tier: 0 }, ["emulate", ...common], env);
  const control = group.start(
    { name: "control", tier: 0 },
    ["control", ...common, "--admin", address(ports.control), "--store", store],
    env,
  );
  await engines.ready;
  group.tell(control);
  await control.ready;
  const gateways = [...fleet.clusters.keys()].map((cluster) => {
    const args = ["gateway", "--cluster", cluster, ...common, "--control", controlUrl];
    args.push("--state", join(run.folder, `gateway-${cluster}`), "--listen", address(ports.gateways.get(cluster)!));
    args.push("--admin", address(ports.gatewayAdmins.get(cluster)!), "--threads", String(run.threads));
    return group.start({ name: `gateway ${cluster}`, tier: 1 }, args, env);
  });

  const measurement = new UpMeasurement(fleet);
  const snapshots = () => fetchSnapshots(controlUrl, fleet.clusters.keys(), process.env.GUIDEVANE_ADMIN_TOKEN);
  const driven = run.talk && [...fleet.demandRps.values()].some((byClass) => byClass.size > 0);
  // The driver waits for each gateway by itself.
  const measured = driven ? measureDriven(run, env, measurement, snapshots) : null;
  const settled = await measured?.settled;
  await Promise.all(gateways.map((child) => child.ready));
  if (!driven) measurement.addSnapshots(await firstSnapshots(snapshots));

  return {
    measure: settled ?? measurement.result(),
    later: measured?.later ?? null,
    nearest: nearestOnly(planInputs(fleet)),
    router: await routerKind(run),
  };
}

type FetchSnapshots = () => ReturnType<typeof fetchSnapshots>;

/** Starts the driver and collects its reports and the snapshots in force, until there is enough to show, and then until there is more. */
function measureDriven(
  run: UpRun,
  env: NodeJS.ProcessEnv,
  measurement: UpMeasurement,
  snapshots: FetchSnapshots,
): { readonly settled: Promise<UpMeasure>; readonly later: Promise<UpMeasure> } {
  const args = ["drive", "--fleet", run.fleetFile, "--json", "--every", "1"];
  for (const [cluster, port] of run.ports.gateways) args.push("--gateway", `${cluster}=${local(port)}`);
  const settled = Promise.withResolvers<UpMeasure>();
  const later = Promise.withResolvers<UpMeasure>();
  // Nobody waits for it where the first table is all that is shown.
  later.promise.catch(() => {});
  const driven = sum([...run.fleet.demandRps.values()].flatMap((byClass) => [...byClass.values()]));
  let warm = 0;
  let measured = 0;
  let waiting = false;
  const giveUpMs = performance.now() + FIRST_SNAPSHOT_MS;
  run.group.start({ name: "drive", tier: 2 }, args, env, (line) => {
    const report = JSON.parse(line) as DriveReport;
    if (measured >= LATER_REPORTS || waiting || report.cells.every(({ sent }) => sent === 0)) return;
    if (measured >= MEASURED_REPORTS) {
      measurement.addReport(report);
      measured += 1;
      const isLast = measured === LATER_REPORTS;
      snapshots().then((found) => {
        if (found !== null) measurement.addSnapshots(found);
        if (isLast) later.resolve(measurement.result());
      }, later.reject);
      return;
    }
    warm += 1;
    if (warm <= WARM_UP_REPORTS) return;
    waiting = true;
    snapshots().then((found) => {
      waiting = false;
      if (found === null) {
        if (performance.now() > giveUpMs) settled.reject(noSnapshot());
        return;
      }
      // On a busy machine traffic takes longer to come up, and a plan for half of it would be shown beside all of it.
      const known = plannedRps(found) >= KNOWN_PART * driven;
      if (measured === 0 && !known && warm < MOST_WARM_UP_REPORTS) return;
      measurement.addSnapshots(found);
      measurement.addReport(report);
      measured += 1;
      if (measured === MEASURED_REPORTS) settled.resolve(measurement.result());
    }, settled.reject);
  });
  return { settled: settled.promise, later: later.promise };
}

function plannedRps(byCluster: ReadonlyMap<string, ClusterSnapshot>): number {
  return sum([...byCluster.values()].flatMap((snapshot) => snapshot.cells.map((cell) => cell.demandRps)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
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
async function routerKind({ ports }: UpRun): Promise<string> {
  const token = process.env.GUIDEVANE_ADMIN_TOKEN;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const pages = [...ports.gatewayAdmins.values()].map(async (port) => {
    const { text } = await fetchAnswer("gateway", local(port), "/metrics", { headers });
    return text;
  });
  const native = (await Promise.all(pages)).map((page) => /^guidevane_native(?:\{[^}]*\})? 1$/m.test(page));
  if (native.every(Boolean)) return "native";
  return native.some(Boolean)
    ? "native in some gateways, TypeScript in others"
    : "TypeScript (no native router was loaded)";
}

const FIRST_SNAPSHOT_MS = 30_000;
/** Seconds of traffic before measuring: the gateways' first reports, and a tick on them. */
const WARM_UP_REPORTS = 3;
const MOST_WARM_UP_REPORTS = 7;
const KNOWN_PART = 0.85;
const MEASURED_REPORTS = 5;
/** Of which those are the first: at 90 % load the queues of five seconds say little of the mean. */
const LATER_REPORTS = 30;

export function local(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function address(port: number): string {
  return `127.0.0.1:${port}`;
}

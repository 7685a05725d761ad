import { copyFileSync } from "node:fs";
import type { Workload } from "../../packages/simulator/src/index.ts";
import { MODEL } from "../../test/src/real/client.ts";
import { eventually, type Gateway, type Whole } from "../../test/src/whole.ts";
import type { LabEngines } from "./lab-engines.ts";
import type { Answer } from "./lab-table.ts";
import { type Planned, replay } from "./replay.ts";
import { StreamClient } from "./stream.ts";

/** Part of the requests of each cluster; the engines of `east` are too few for its own. */
export const ORIGINS: Readonly<Record<string, number>> = { east: 0.65, west: 0.35 };
/** Between the two regions. On one machine nothing takes that long: it is what the plan reckons with. */
const RTT_MS = 30;

/** Writes the fleet file of the engines, with classes and demand as the workload has them, to `file` too. */
export function writeFleet(
  whole: Whole,
  lab: LabEngines,
  profiles: ReadonlyMap<string, string>,
  workload: Workload,
  file: string,
): void {
  const mean = (tokens: Uint32Array) => tokens.reduce((sum, each) => sum + each, 0) / workload.size;
  const seconds = workload.atMs.at(-1)! / 1000;
  const demandRps = workload.clusters.map((name, at) => {
    const count = workload.cluster.filter((each) => each === at).length;
    return [name, { chat: count / seconds }] as const;
  });
  const health = { path: "/health", intervalMs: 1000 };
  const engines = lab.engines.map(({ id, region, url }) => {
    return [id, { url, region, models: [MODEL], kind: "llamacpp", profile: id, health }] as const;
  });
  whole.writeFleet(Object.fromEntries(engines), {
    clusters: { east: { region: "east" }, west: { region: "west" } },
    classes: {
      chat: { model: MODEL, promptTokens: mean(workload.promptTokens), outputTokens: mean(workload.outputTokens) },
    },
    network: { defaultRttMs: RTT_MS },
    profiles: Object.fromEntries([...profiles].map(([id, path]) => [id, { file: path }])),
    demandRps: Object.fromEntries(demandRps),
    policy: {},
  });
  copyFileSync(whole.fleetFile, file);
}

/** What counts of a run: all but what came while it settled. */
export interface RealRun {
  readonly answers: readonly Answer[];
  /** What went wrong, of each request that had no whole answer. */
  readonly failures: readonly string[];
  readonly lateMs: number;
}

/** The workload in real time through a gateway of each cluster, with a control plane. */
export async function runReal(whole: Whole, lab: LabEngines, workload: Workload): Promise<RealRun> {
  const control = await whole.control();
  const clients: StreamClient[] = [];
  for (const cluster of workload.clusters) {
    const gateway = await whole.gateway(control.url, cluster);
    await eventually(() => routesBySnapshot(gateway));
    clients.push(new StreamClient(gateway.url, true));
  }
  const plan: Planned[] = Array.from(workload.atMs, (atMs, row) => ({
    atMs,
    client: clients[workload.cluster[row]!]!,
    body: lab.prompts.body(workload.promptTokens[row]!, workload.outputTokens[row]!),
    headers: { "x-session-id": `s${workload.conversation[row]!}` },
  }));
  const { answers, lateMs } = await replay(plan);
  for (const client of clients) client.close();
  const counted = answers.filter((_, row) => workload.atMs[row]! >= workload.settleMs);
  return {
    answers: counted.flatMap(({ failure, engine, ttftMs, e2eMs, outputTokens }) =>
      failure === null ? [{ engine: engine ?? "", ttftMs, e2eMs, outputTokens }] : [],
    ),
    failures: counted.flatMap(({ failure }) => failure ?? []),
    lateMs,
  };
}

async function routesBySnapshot(gateway: Gateway): Promise<boolean> {
  const body = { model: MODEL, messages: [{ role: "user", content: "ready?" }], max_tokens: 1 };
  return Number((await gateway.post(body)).headers.get("x-guidevane-snapshot")) > 0;
}

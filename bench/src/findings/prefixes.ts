import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Fleet } from "@guidevane/core";
import {
  cacheOracle,
  describedBy,
  evenCacheOracle,
  figuresOf,
  guidevaneWith,
  type LabOptions,
  POLICIES,
  type PolicyDefinition,
  type PolicyFigures,
  readTrace,
  runLab,
  type Workload,
} from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { KV_TOKENS, ms, percent, SLO } from "./runs.ts";
import { named, printTable } from "./show.ts";

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../shared/data");
export const MOONCAKE = { file: "mooncake_conversation.jsonl.gz", speed: 2 };
const TRACES = [MOONCAKE, { file: "agentic_coding_sessions.jsonl.gz", speed: 0.25 }];
/** Of the lab, settling included. */
const SECONDS = 1200;
const SETTLE_MS = 300_000;
const BASELINES = ["prefix-affinity", "bounded-load", "hash-only", "capacity-proportional", "static-ring"];
const FROZEN = [{ kind: "control-down", atMs: 1000, forMs: 1e9 }] as const;

/** Sessions are few and long: one seed says little of what lies where. */
const ORACLE_SEEDS = [1, 2, 3, 4];

/** What of real prompts is found in caches, with one gateway a cluster and with two. */
export async function prefixesFinding(): Promise<void> {
  const lab = await labFleetFile();
  for (const { file, speed } of TRACES) {
    const path = traceAt(file);
    if (!existsSync(path)) {
      process.stdout.write(`\n${file}: not there; set GUIDEVANE_DATA\n`);
      continue;
    }
    const text = traceText(path);
    const prompts = (seed: number) => promptsOf(lab, text, { name: file, speed, seed });
    byOtherWeights(`${file}, ${speed} × speed`, prompts(1));
    bySameWeights(`${file}, ${speed} × speed, the same weights and bound`, ORACLE_SEEDS.map(prompts));
  }
}

export function traceAt(file: string): string {
  return join(DATA, "traces", file);
}

export function traceText(path: string): string {
  return gunzipSync(readFileSync(path)).toString("utf8");
}

export interface Prompts {
  readonly fleet: Fleet;
  readonly workload: Workload;
  readonly seed: number;
}

export function promptsOf(lab: Fleet, text: string, trace: { name: string; speed: number; seed: number }): Prompts {
  const workload = readTrace(text, {
    ...trace,
    origins: [...lab.demandRps].map(([cluster, byClass]) => ({
      cluster,
      part: [...byClass.values()].reduce((sum, rps) => sum + rps, 0),
      shiftHours: 0,
    })),
    requestClass: "chat",
    seconds: SECONDS,
    settleMs: SETTLE_MS,
    model: null,
    scale: 1,
    size: { promptTokens: 512, outputTokens: 256 },
  });
  return { fleet: describedBy(lab, workload), workload, seed: trace.seed };
}

export function figures(
  prompts: Prompts,
  policy: PolicyDefinition,
  gatewaysPerCluster: number,
  failures: LabOptions["failures"] = [],
): PolicyFigures {
  return figuresOf(runLab({ ...prompts, policy, kvTokens: KV_TOKENS, gatewaysPerCluster, failures }), policy, SLO);
}

function byOtherWeights(title: string, prompts: Prompts): void {
  const cells = (policy: PolicyDefinition, failures: LabOptions["failures"] = []): string[] =>
    [1, 2].flatMap((gateways) => {
      const { hitPart, movedPart, e2e } = figures(prompts, policy, gateways, failures);
      return [percent(hitPart), percent(movedPart), ms(e2e?.meanMs)];
    });
  const guidevane = named(POLICIES, "guidevane");
  const rows = [
    ["guidevane", ...cells(guidevane)],
    ["its rings, no bound, no choice", ...cells(guidevaneWith("rings", { placement: "home", bound: false }))],
    ["its first weights, standing still", ...cells(guidevane, FROZEN)],
    ...BASELINES.map((name) => [name, ...cells(named(POLICIES, name))]),
  ];
  const columns = ["prefixes found", "follow-ups moved", "E2E mean, ms"];
  printTable(`${title}: with one gateway a cluster, then two`, ["", ...columns, ...columns], rows);
}

/** Means of the seeds, and Guidevane's ÷ theirs. */
function bySameWeights(title: string, seeds: readonly Prompts[]): void {
  const policies = [named(POLICIES, "guidevane"), cacheOracle, evenCacheOracle];
  const columns = [1, 2].map((gateways) =>
    policies.map((policy) => {
      const runs = seeds.map((prompts) => figures(prompts, policy, gateways));
      const mean = (of: (each: PolicyFigures) => number) => runs.reduce((sum, each) => sum + of(each), 0) / runs.length;
      return { found: mean(({ hitPart }) => hitPart), moved: mean(({ movedPart }) => movedPart) };
    }),
  );
  const rows = policies.map(({ name }, at) => [
    name,
    ...columns.flatMap((column) => {
      const { found, moved } = column[at]!;
      return [percent(found), (column[0]!.found / found).toFixed(3), percent(moved)];
    }),
  ]);
  const head = ["prefixes found", "guidevane's ÷ it", "follow-ups moved"];
  printTable(`${title}: with one gateway a cluster, then two`, ["", ...head, ...head], rows);
}

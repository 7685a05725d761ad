import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  describedBy,
  figuresOf,
  guidevaneWith,
  type LabOptions,
  POLICIES,
  type PolicyDefinition,
  readTrace,
  runLab,
} from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { KV_TOKENS, ms, percent, SLO } from "./runs.ts";
import { named, printTable } from "./show.ts";

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../shared/data");
const TRACES = [
  { file: "mooncake_conversation.jsonl.gz", speed: 2 },
  { file: "agentic_coding_sessions.jsonl.gz", speed: 0.25 },
];
/** Of the lab, settling included. */
const SECONDS = 1200;
const SETTLE_MS = 300_000;
const BASELINES = ["prefix-affinity", "bounded-load", "hash-only", "capacity-proportional", "static-ring"];
const FROZEN = [{ kind: "control-down", atMs: 1000, forMs: 1e9 }] as const;

/** What of real prompts is found in caches, with one gateway a cluster and with two. */
export async function prefixesFinding(): Promise<void> {
  const lab = await labFleetFile();
  for (const { file, speed } of TRACES) {
    const path = join(DATA, "traces", file);
    if (!existsSync(path)) {
      process.stdout.write(`\n${file}: not there; set GUIDEVANE_DATA\n`);
      continue;
    }
    const workload = readTrace(gunzipSync(readFileSync(path)).toString("utf8"), {
      name: file,
      origins: [...lab.demandRps].map(([cluster, byClass]) => ({
        cluster,
        part: [...byClass.values()].reduce((sum, rps) => sum + rps, 0),
        shiftHours: 0,
      })),
      requestClass: "chat",
      seed: 1,
      speed,
      seconds: SECONDS,
      settleMs: SETTLE_MS,
      model: null,
      scale: 1,
      size: { promptTokens: 512, outputTokens: 256 },
    });
    const fleet = describedBy(lab, workload);
    const cells = (policy: PolicyDefinition, failures: LabOptions["failures"] = []): string[] =>
      [1, 2].flatMap((gatewaysPerCluster) => {
        const run = runLab({ fleet, workload, policy, seed: 1, kvTokens: KV_TOKENS, gatewaysPerCluster, failures });
        const figures = figuresOf(run, policy, SLO);
        return [percent(figures.hitPart), percent(figures.movedPart), ms(figures.e2e?.meanMs)];
      });
    const guidevane = named(POLICIES, "guidevane");
    const rows = [
      ["guidevane", ...cells(guidevane)],
      ["its rings, no bound, no choice", ...cells(guidevaneWith("rings", { placement: "home", bound: false }))],
      ["its first weights, standing still", ...cells(guidevane, FROZEN)],
      ...BASELINES.map((name) => [name, ...cells(named(POLICIES, name))]),
    ];
    const columns = ["prefixes found", "follow-ups moved", "E2E mean, ms"];
    printTable(`${file}, ${speed} × speed: with one gateway a cluster, then two`, ["", ...columns, ...columns], rows);
  }
}

import type { Fleet } from "@guidevane/core";
import {
  figuresOf,
  type GuidevaneParts,
  guidevaneWith,
  type LabRun,
  POLICIES,
  type PolicyDefinition,
  runLab,
  syntheticWorkload,
} from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { KV_TOKENS, ms, percent, SLO } from "./runs.ts";
import { named, printTable } from "./show.ts";
import { atLoad } from "./weights.ts";

const LOAD = 0.8;
const SEEDS = [1, 2];
const HASH_ONLY: Partial<GuidevaneParts> = { placement: "home", bound: false, memory: false };
const CASES: readonly { title: string; parts: Partial<GuidevaneParts>; gateways: number }[] = [
  { title: "hash only", parts: HASH_ONLY, gateways: 1 },
  { title: "bound, nothing remembered", parts: { placement: "home", memory: false }, gateways: 1 },
  { title: "bound, moves remembered", parts: { placement: "home" }, gateways: 1 },
  { title: "two choices, then follow", parts: {}, gateways: 1 },
  { title: "bound, moves remembered, 2 gateways", parts: {}, gateways: 2 },
  { title: "bound, moves remembered, 8 gateways", parts: {}, gateways: 8 },
];

/**
 * Placement and bound by the production selector, all by the same weights, which stand still: the plan for the true demand,
 * and no control plane after it. One conversation of 20 is hot. Then the lab's own bounded load beside them.
 */
export async function placementFinding(): Promise<void> {
  for (const [title, fleet] of await fleets()) {
    const rows = CASES.map(({ title: name, parts, gateways }) => [
      name,
      ...cells(fleet, guidevaneWith(name, { penalties: false, ...parts }), gateways),
    ]);
    // It publishes no weights to be off from.
    const bounded = ["bounded-load", ...cells(fleet, named(POLICIES, "bounded-load"), 1).slice(0, -1), "–"];
    const head = ["", "follow-ups at their engine", "prefix hits", "TTFT p99", "E2E mean", "E2E p99", "shares off"];
    printTable(title, head, [...rows, bounded]);
  }
}

/** Eight engines in one region, all alike or of three sizes. */
async function fleets(): Promise<[string, Fleet][]> {
  const lab = await labFleetFile();
  const engine = [...lab.engines.values()][0]!;
  const of = (sizes: Readonly<Record<string, number>>): Fleet => {
    const engines = Object.entries(sizes).flatMap(([profile, count]) =>
      Array.from({ length: count }, (_, at) => {
        const { capacityWps } = lab.profiles.get(profile)!;
        return { ...engine, id: `${profile}-${at}`, profile, capacityWps, replicas: 1 };
      }),
    );
    const [cluster] = [...lab.clusters.values()].filter(({ region }) => region === engine.region);
    return atLoad(
      {
        ...lab,
        clusters: new Map([[cluster!.name, cluster!]]),
        engines: new Map(engines.map((each) => [each.id, each])),
        classes: new Map([["chat", lab.classes.get("chat")!]]),
        demandRps: new Map([[cluster!.name, new Map([["chat", 1]])]]),
      },
      LOAD,
    );
  };
  return [
    ["eight equal engines at 0.80", of({ a100: 8 })],
    ["eight mixed engines at 0.80 (12.5, 7 and 3 work units/s)", of({ h100: 2, a100: 3, l40s: 3 })],
  ];
}

/** Means of the seeds. */
function cells(fleet: Fleet, policy: PolicyDefinition, gatewaysPerCluster: number): string[] {
  const runs = SEEDS.map((seed) => {
    const workload = syntheticWorkload({ fleet, seed, seconds: 900, turns: 6, hotPart: 0.05 });
    const weights = new Float64Array(fleet.engines.size);
    const watched: PolicyDefinition = {
      ...policy,
      create: (world, values) => policy.create({ ...world, published: (_, each) => weights.set(each) }, values),
    };
    const failures = [{ kind: "control-down", atMs: 1000, forMs: 1e9 }] as const;
    const run = runLab({ fleet, workload, policy: watched, seed, gatewaysPerCluster, failures, kvTokens: KV_TOKENS });
    return { figures: figuresOf(run, policy, SLO), off: sharesOff(run, weights) };
  });
  const mean = (of: (run: (typeof runs)[0]) => number): number =>
    runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  return [
    percent(mean(({ figures }) => 1 - figures.movedPart)),
    percent(mean(({ figures }) => figures.hitPart)),
    ms(mean(({ figures }) => figures.ttft!.p99Ms)),
    ms(mean(({ figures }) => figures.e2e!.meanMs)),
    ms(mean(({ figures }) => figures.e2e!.p99Ms)),
    percent(mean(({ off }) => off)),
  ];
}

/** Half the sum over engines of |part of the requests − weight|. */
function sharesOff({ tally }: LabRun, weights: Float64Array): number {
  const counts = new Float64Array(weights.length);
  let all = 0;
  for (const [row, engine] of tally.engine.entries()) {
    if (engine < 0 || !(tally.arrivedMs[row]! >= tally.workload.settleMs)) continue;
    counts[engine]! += 1;
    all += 1;
  }
  return weights.reduce((sum, weight, engine) => sum + Math.abs(counts[engine]! / all - weight) / 2, 0);
}

import type { Fleet } from "@guidevane/core";
import { POLICIES, type PolicyDefinition, type PolicyFigures } from "@guidevane/simulator";
import { labFleetFile, misbelieved } from "./fleet.ts";
import { lost, ms, percent, runOf } from "./runs.ts";
import { named, printTable } from "./show.ts";

const HEAD = ["TTFT mean, ms", "p99", "E2E mean, ms", "p99", "hits", "lost"];
const cells = (figures: PolicyFigures): string[] => [
  ms(figures.ttft?.meanMs),
  ms(figures.ttft?.p99Ms),
  ms(figures.e2e?.meanMs),
  ms(figures.e2e?.p99Ms),
  percent(figures.hitPart),
  percent(lost(figures)),
];

/** Demand of each cluster goes up and down by 30 % in ten minutes, the clusters a quarter of it apart. */
function swinging(fleet: Fleet): (cluster: string, atMs: number) => number {
  const clusters = [...fleet.clusters.keys()];
  return (cluster, atMs) =>
    1 + 0.3 * Math.sin(2 * Math.PI * (atMs / 600_000 + clusters.indexOf(cluster) / clusters.length));
}

/** What moving keys costs in cache hits: weights in proportion to capacity that are shaken at every tick. */
export async function churnFinding(): Promise<void> {
  const fleet = await labFleetFile();
  const rows = [0, 0.02, 0.05, 0.1, 0.2, 0.5].map((amount) => {
    const figures = runOf(fleet, shaken(amount), { synthetic: { load: 0.7 } });
    return [percent(figures.churnPerMin), percent(figures.movedPart), ...cells(figures)];
  });
  printTable("cache hits under churn, 0.70", ["churn/min", "follow-ups that moved", ...HEAD], rows);
}

/** Capacity-proportional weights times 1 + amount, and 1 − amount at the next tick, every other engine the other way. */
function shaken(amount: number): PolicyDefinition {
  const steady = named(POLICIES, "capacity-proportional");
  return {
    ...steady,
    name: `shaken by ${amount}`,
    create(world, values) {
      let tick = 0;
      // The policy reads the capacity of the fleet that it is shown.
      const capacityWps = world.fleet.capacityWps.slice();
      const inner = steady.create({ ...world, fleet: { ...world.fleet, capacityWps } }, values);
      return {
        route: (gateway, request, tried, isFree) => inner.route(gateway, request, tried, isFree),
        tick() {
          tick += 1;
          for (const [e, capacity] of world.fleet.capacityWps.entries())
            capacityWps[e] = capacity * (1 + ((e + tick) % 2 === 0 ? amount : -amount));
          inner.tick!();
        },
      };
    },
  };
}

/** Old snapshots for Guidevane, old signals for those that route by them, while demand swings. */
export async function ageFinding(): Promise<void> {
  const fleet = await labFleetFile();
  const synthetic = { load: 0.8, seconds: 900, shape: swinging(fleet) };
  const rows = [0, 1, 5, 15, 30, 60].flatMap((ageS) => [
    [String(ageS), "guidevane", ...cells(runOf(fleet, "guidevane", { synthetic, snapshotDelayMs: 1000 * ageS }))],
    ...["power-of-two", "prefix-affinity", "greedy-network"].map((name) => {
      const signals = { everyMs: Math.max(100, 1000 * ageS), delayMs: 10 };
      return [String(ageS), name, ...cells(runOf(fleet, name, { synthetic: { ...synthetic, load: 0.5 }, signals }))];
    }),
  ]);
  printTable("age of what is routed by (guidevane at 0.80, the others at 0.50)", ["age, s", "policy", ...HEAD], rows);
}

/** The control plane is away for ten minutes, from each of five moments. */
export async function outageFinding(): Promise<void> {
  const fleet = await labFleetFile();
  const rows = [
    { title: "constant demand", shape: () => 1 },
    { title: "swinging demand", shape: swinging(fleet) },
  ].flatMap(({ title, shape }) => {
    const synthetic = { load: 0.8, seconds: 900, shape };
    const away = [10, 60, 120, 180, 240].map((fromS) => {
      const failures = [{ kind: "control-down" as const, atMs: SETTLED_MS + 1000 * fromS, forMs: 600_000 }];
      return [
        title,
        `away for 10 minutes from ${fromS} s`,
        ...cells(runOf(fleet, "guidevane", { synthetic, failures })),
      ];
    });
    return [[title, "up", ...cells(runOf(fleet, "guidevane", { synthetic }))], ...away];
  });
  printTable("without a control plane, 0.80", ["demand", "control plane", ...HEAD], rows);
}

/** The caches of the synthetic conversations have settled by then. */
const SETTLED_MS = 400_000;

/** The plan believes other profiles than the engines have: by SKU, one too good by 30 %, one too bad. */
export async function errorFinding(): Promise<void> {
  const fleet = await labFleetFile();
  const cases: { title: string; latency: Record<string, number>; capacity: Record<string, number> }[] = [
    { title: "right", latency: {}, capacity: {} },
    { title: "all latencies +30 %", latency: { h100: 1.3, a100: 1.3, l40s: 1.3 }, capacity: {} },
    { title: "h100 latency −30 %, l40s +30 %", latency: { h100: 0.7, l40s: 1.3 }, capacity: {} },
    { title: "h100 latency +30 %, l40s −30 %", latency: { h100: 1.3, l40s: 0.7 }, capacity: {} },
    { title: "h100 capacity +30 %, l40s −30 %", latency: {}, capacity: { h100: 1.3, l40s: 0.7 } },
    { title: "h100 capacity −30 %, l40s +30 %", latency: {}, capacity: { h100: 0.7, l40s: 1.3 } },
  ];
  for (const load of [0.6, 0.8]) {
    const rows = cases.map(({ title, latency, capacity }) => {
      const believed = misbelieved(fleet, (name) => ({ latency: latency[name] ?? 1, capacity: capacity[name] ?? 1 }));
      const figures = runOf(fleet, "guidevane", { synthetic: { load, seconds: 600 }, believed });
      return [title, ...cells(figures), figures.reversalsPerMin.toFixed(1)];
    });
    printTable(`profiles that are wrong, ${load}`, ["believed", ...HEAD, "reversals/min"], rows);
  }
}

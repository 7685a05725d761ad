import {
  type ClusterSnapshot,
  encodeRing,
  engineDefinition,
  type Fleet,
  loadFleet,
  type Publication,
} from "@guidevane/core";
import type { PlanInputs } from "@guidevane/optimizer";

/** Two clusters, two engines, one class. Engines' ports are given, so that tests can stand servers behind them. */
export async function testFleet(
  ports: { e1?: number; e2?: number } = {},
  more = "",
  classes = "",
  engines = "",
): Promise<Fleet> {
  return loadFleet(
    `
clusters: { east: { region: r-east }, west: { region: r-west } }
engines:
  e1: { url: "http://127.0.0.1:${ports.e1 ?? 9}", kind: vllm, region: r-east, models: [m], capacityWps: 100 }
  e2: { url: "http://127.0.0.1:${ports.e2 ?? 9}", kind: vllm, region: r-west, models: [m], capacityWps: 60, replicas: 2 }
${engines}
classes: { chat: { model: m, work: 2 }${classes} }
demandRps: { east: { chat: 7 } }
${more}`,
    "fleet.yaml",
    () => Promise.reject(new Error("no file is named")),
  );
}

/** Models that share no engine: a problem in as many parts. */
export async function manyModelsFleet(shape: {
  models: number;
  clusters: number;
  enginesPerModel: number;
}): Promise<Fleet> {
  const count = (many: number) => Array.from({ length: many }, (_, at) => at);
  const places = count(shape.clusters).map((at) => `c${at}: { region: r${at} }`);
  const engines = count(shape.models * shape.enginesPerModel).map((at) => {
    const [model, place] = [at % shape.models, (5 * at) % shape.clusters];
    return `  e${at}: { url: "http://127.0.0.1:9", region: r${place}, models: [m${model}], capacityWps: ${10 + (at % 7)} }`;
  });
  return loadFleet(
    `
clusters: { ${places.join(", ")} }
engines:
${engines.join("\n")}
classes: { ${count(shape.models).map((model) => `k${model}: { model: m${model}, work: 1 }`)} }
network: { defaultRttMs: 40 }
policy: { slots: 256 }`,
    "fleet.yaml",
    () => Promise.reject(new Error("no file is named")),
  );
}

/** A publication without a solve: every cell goes to the engines that are up, in equal parts. */
export function evenPublication(inputs: PlanInputs): Publication {
  const engines = [...inputs.fleet.engines.values()];
  const up = engines.map(({ id }) => (inputs.engines.get(id)?.readyReplicas ?? 1) > 0);
  const count = Math.max(1, up.filter(Boolean).length);
  const weights = up.map((each) => (each ? 1 / count : 0));
  const owners = Uint16Array.from(
    { length: 64 },
    (_, slot) => up.flatMap((on, i) => (on ? [i] : []))[slot % count] ?? 0,
  );
  const bound = { objectiveMs: 100, lowerBoundMs: 99, gapMs: 1, gap: 0.01 };
  const clusters = [...inputs.fleet.clusters.keys()].map((cluster): [string, ClusterSnapshot] => [
    cluster,
    {
      version: 0,
      epoch: 0,
      madeAt: new Date(inputs.wallMs).toISOString(),
      cluster,
      gateways: inputs.gateways.get(cluster) ?? 0,
      engines: Object.fromEntries(
        engines.map((engine) => [
          engine.id,
          {
            ...engineDefinition(engine),
            rttMs: 0,
            plannedFactor: 1,
            plannedReady: inputs.engines.get(engine.id)?.readyReplicas ?? engine.replicas,
            loadWps: 20,
            capacityWps: 80,
            priceMs: 5,
            worthMs: 1,
          },
        ]),
      ),
      classes: structuredClone(Object.fromEntries(inputs.fleet.classes)) as unknown as ClusterSnapshot["classes"],
      cells: [...inputs.fleet.classes.values()].map(({ name, work }) => ({
        cluster,
        class: name,
        demandRps: inputs.demandRps.get(`${cluster}\n${name}`) ?? 0,
        work,
        engines: engines.map(({ id }) => id),
        weights,
        expectedMs: engines.map(() => 200),
        addends: engines.map(() => [1, 2, 3, 4, 0] as [number, number, number, number, number]),
        reserves: [],
        shed: 0,
        priceMs: 10,
        streamLimit: 100,
        ring: encodeRing(owners, engines.length),
      })),
      certificate: { ...bound, churnFree: bound, expectedLatencyMs: 120 },
    },
  ]);
  return { clusters: new Map(clusters), problem: {} };
}

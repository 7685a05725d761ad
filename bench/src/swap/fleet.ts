import { type ClusterSnapshot, encodeRing, type Fleet, loadFleet, seededRandom } from "@guidevane/core";
import { bootstrapSnapshot, buildRing } from "@guidevane/selector";

const CLUSTER = "c";
export const MODELS = 10;
const RESERVES = 8;
const SLOTS = 4096;

/** A fleet of one cluster: each engine serves two of ten models, each class is of one of them. */
export function largeFleet(engines: number, classes: number, urlOf: (engine: string) => string): Promise<Fleet> {
  const engine = (at: number) => ({
    url: urlOf(`e${at}`),
    region: "r",
    kind: "openai",
    models: [`m${at % MODELS}`, `m${(at + 1) % MODELS}`],
    capacityWps: 50,
    capabilities: ["tools", "json_schema"],
    maxContextTokens: 131_072,
  });
  const text = JSON.stringify({
    clusters: { [CLUSTER]: { region: "r" } },
    engines: Object.fromEntries(range(engines).map((at) => [`e${at}`, engine(at)])),
    classes: Object.fromEntries(range(classes).map((at) => [`k${at}`, { model: `m${at % MODELS}`, work: 1 }])),
  });
  return loadFleet(text, "bench fleet", () => Promise.reject(new Error("no file is named")));
}

/** What a control plane would publish for it: every class on all engines of its model but the reserves, unevenly. */
export function largeSnapshot(fleet: Fleet, version: number): ClusterSnapshot {
  const random = seededRandom(version);
  const base = bootstrapSnapshot(fleet, CLUSTER, 1_700_000_000_000);
  const cells = base.cells.map((cell) => {
    const ids = cell.engines.slice(RESERVES);
    const parts = ids.map(() => 0.1 + random());
    const sum = parts.reduce((total, part) => total + part, 0);
    return {
      ...cell,
      engines: ids,
      weights: parts.map((part) => part / sum),
      expectedMs: ids.map(() => 1000 + 500 * random()),
      addends: ids.map((): [number, number, number, number, number] => [
        5 * random(),
        1000,
        50 * random(),
        10 * random(),
        0,
      ]),
      reserves: cell.engines.slice(0, RESERVES).map((engine) => ({ engine, spareWps: 10, reducedCostMs: random() })),
      demandRps: 10,
      streamLimit: 1000,
      ring: encodeRing(buildRing(ids, parts, SLOTS).owners, ids.length),
    };
  });
  const engines = Object.entries(base.engines).map(([id, engine]) => [id, { ...engine, loadWps: 30 * random() }]);
  return { ...base, version, epoch: 1, engines: Object.fromEntries(engines), cells };
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

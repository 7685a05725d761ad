import type { Fleet } from "@guidevane/core";
import { type PolicyDefinition, type PolicyValues, runLab, workloadOf } from "@guidevane/simulator";

/** Weights of each cell (class · clusters + cluster) by engine, as a policy publishes them for the fleet file's demand. */
export function publishedWeights(
  fleet: Fleet,
  policy: PolicyDefinition,
  values: PolicyValues = {},
): Map<number, Float64Array> {
  const weights = new Map<number, Float64Array>();
  const captured: PolicyDefinition = {
    ...policy,
    create: (world, chosen) =>
      policy.create({ ...world, published: (cell, each) => void weights.set(cell, each.slice()) }, chosen),
  };
  runLab({ fleet, workload: oneRequest(fleet), policy: captured, values, seed: 1 });
  return weights;
}

/** The first round of the control plane comes before it, by the fleet file's demand. */
function oneRequest(fleet: Fleet) {
  const facts = {
    name: "one request",
    assumptions: [],
    settleMs: 0,
    clusters: [...fleet.clusters.keys()],
    classes: [...fleet.classes.keys()],
    blockTokens: 256,
  };
  const row = { atMs: 0, cluster: 0, requestClass: 0, promptTokens: 1, outputTokens: 1, conversation: 0, turn: 0 };
  return workloadOf(facts, [{ ...row, blocks: [], promptBlocks: 0, afterBlocks: 0 }]);
}

/** The fleet with its demand scaled to a part of all capacity, in work. */
export function atLoad(fleet: Fleet, load: number): Fleet {
  const capacity = [...fleet.engines.values()].reduce((sum, each) => sum + each.capacityWps * each.replicas, 0);
  let work = 0;
  for (const byClass of fleet.demandRps.values())
    for (const [name, rps] of byClass) work += rps * fleet.classes.get(name)!.work;
  const factor = (load * capacity) / work;
  return {
    ...fleet,
    demandRps: new Map(
      [...fleet.demandRps].map(([cluster, byClass]) => [
        cluster,
        new Map([...byClass].map(([name, rps]) => [name, rps * factor])),
      ]),
    ),
  };
}

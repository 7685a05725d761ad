import { type ClassSpec, type Fleet, profileOf, workOf } from "@guidevane/core";
import type { Workload } from "./workload.ts";

/**
 * The fleet with its classes and demand as a workload has them: mean prompt tokens that no cache has (were caches without
 * end), mean output tokens, their work by the first profile that serves the class, and mean requests/s of each cell. So
 * would an operator write it down after a day of such traffic; a class that says 512 tokens and gets 7,000 misleads every
 * policy that plans.
 */
export function describedBy(fleet: Fleet, workload: Workload): Fleet {
  const sums = workload.classes.map(() => ({ requests: 0, promptTokens: 0, outputTokens: 0 }));
  const counts = workload.clusters.map(() => workload.classes.map(() => 0));
  const seen = new Set<number>();
  let lastMs = 1000;
  for (let row = 0; row < workload.size; row++) {
    const sum = sums[workload.requestClass[row]!]!;
    const from = workload.blockFrom[row]!;
    let found = 0;
    while (found < workload.promptBlocks[row]! && seen.has(workload.blockIds[from + found]!)) found++;
    for (let block = found; block < workload.afterBlocks[row]!; block++) seen.add(workload.blockIds[from + block]!);
    sum.requests += 1;
    sum.promptTokens += Math.max(1, workload.promptTokens[row]! - found * workload.blockTokens);
    sum.outputTokens += workload.outputTokens[row]!;
    counts[workload.cluster[row]!]![workload.requestClass[row]!]! += 1;
    if (workload.atMs[row]! > lastMs) lastMs = workload.atMs[row]!;
  }
  const described = [...fleet.classes].map(([name, spec]): [string, ClassSpec] => {
    const sum = sums[workload.classes.indexOf(name)];
    if (sum === undefined || sum.requests === 0) return [name, spec];
    const promptTokens = sum.promptTokens / sum.requests;
    const outputTokens = sum.outputTokens / sum.requests;
    const engine = [...fleet.engines.values()].find(({ models }) => models.includes(spec.model));
    const work = engine === undefined ? spec.work : workOf(profileOf(fleet, engine), promptTokens, outputTokens);
    return [name, { ...spec, promptTokens, outputTokens, work }];
  });
  const demandRps = new Map(
    workload.clusters.map((cluster, c) => [
      cluster,
      new Map(workload.classes.map((name, k) => [name, (1000 * counts[c]![k]!) / lastMs])),
    ]),
  );
  return { ...fleet, classes: new Map(described), demandRps };
}

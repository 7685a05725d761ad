import { Bench } from "tinybench";
import type { BenchCase } from "./case.ts";
import { type CaseResult, median } from "./results.ts";

export interface Effort {
  /** Each round times every case once, so that a slow minute of the machine falls on all of them. */
  readonly rounds: number;
  readonly caseMs: number;
  readonly warmupMs: number;
  /** Calls of a case in a round, at least. */
  readonly leastRuns: number;
}

const usualEffort: Effort = { rounds: 5, caseMs: 200, warmupMs: 50, leastRuns: 8 };

/**
 * Times cases in rounds. The result of a case is the median of its rounds' medians, its spread the largest distance of a
 * round from that: what differs from run to run on this machine, not what differs from call to call.
 */
export async function measure(
  cases: readonly BenchCase[],
  effort: Effort = usualEffort,
): Promise<Map<string, CaseResult>> {
  const rounds = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  for (let round = 0; round < effort.rounds; round++) {
    for (const each of cases) rounds.get(each.name)!.push(await medianNs(each, effort));
  }
  return new Map(
    [...rounds].map(([name, values]) => {
      const middle = median(values);
      const spread = Math.max(...values.map((value) => Math.abs(value - middle)));
      return [name, { medianNs: middle, spreadNs: spread, rounds: values.length }];
    }),
  );
}

async function medianNs(each: BenchCase, effort: Effort): Promise<number> {
  const leastRuns = each.leastRuns ?? effort.leastRuns;
  const bench = new Bench({
    time: effort.caseMs,
    warmupTime: effort.warmupMs,
    iterations: leastRuns,
    warmupIterations: Math.min(2, leastRuns - 1),
  });
  bench.add(each.name, () => each.run());
  const [task] = await bench.run();
  const result = task?.result;
  if (result?.state !== "completed")
    throw new Error(`${each.name}: ${result?.state === "errored" ? result.error.message : result?.state}`);
  return (result.latency.p50 * 1e6) / each.batch;
}

import { figuresOf, POLICIES, runLab, syntheticWorkload, tune } from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { KV_TOKENS, lost, SLO } from "./runs.ts";
import { printTable } from "./show.ts";

const LOADS = [0.5, 0.6, 0.7, 0.8, 0.85, 0.92];

/**
 * All policies, or Guidevane and those of GUIDEVANE_POLICIES, each tuned on another seed at each load: mean and p99 of E2E
 * in the simulation, ÷ Guidevane's.
 */
export async function loadsFinding(only: readonly number[] = []): Promise<void> {
  const loads = only.length > 0 ? only : LOADS;
  const names = process.env.GUIDEVANE_POLICIES?.split(",");
  const policies = POLICIES.filter(({ name }) => name === "guidevane" || (names?.includes(name) ?? true));
  const fleet = await labFleetFile();
  const runs = loads.map((load) => {
    const workload = (seed: number) => syntheticWorkload({ fleet, seed, seconds: 300, load });
    const practice = workload(1001);
    const examination = workload(1);
    return policies.map((policy) => {
      const options = { fleet, seed: 1, kvTokens: KV_TOKENS, policy };
      const values = tune({ ...options, workload: practice });
      return figuresOf(runLab({ ...options, workload: examination, values }), policy, SLO);
    });
  });
  const show = (title: string, of: (figures: (typeof runs)[0][0]) => number) => {
    const rows = policies.map((policy, at) => [
      policy.name,
      ...runs.map((list) => {
        const [ours, theirs] = [list[0]!, list[at]!];
        if (lost(theirs) > 0.01) return "lost";
        return at === 0 ? `${of(ours).toFixed(0)} ms` : (of(theirs) / of(ours)).toFixed(2);
      }),
    ]);
    printTable(title, ["policy", ...loads.map((load) => load.toFixed(2))], rows);
  };
  show("mean E2E, ÷ Guidevane's", (figures) => figures.e2e!.meanMs);
  show("p99 of E2E, ÷ Guidevane's", (figures) => figures.e2e!.p99Ms);
  show("p99 of TTFT, ÷ Guidevane's", (figures) => figures.ttft!.p99Ms);
  const hits = policies.map((policy, at) => [policy.name, ...runs.map((list) => (100 * list[at]!.hitPart).toFixed(0))]);
  printTable("prefix hits, %", ["policy", ...loads.map((load) => load.toFixed(2))], hits);
  const values = policies.map((policy, at) => [policy.name, ...runs.map((list) => JSON.stringify(list[at]!.values))]);
  printTable("values tuned", ["policy", ...loads.map((load) => load.toFixed(2))], values);
}

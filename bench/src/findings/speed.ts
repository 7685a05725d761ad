import { POLICIES, runLab, syntheticWorkload } from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { KV_TOKENS } from "./runs.ts";
import { printTable } from "./show.ts";

/** Simulated requests for each second of processor time, one thread; the making of the workload left out. */
export async function speedFinding(): Promise<void> {
  const fleet = await labFleetFile();
  const workloads = [
    { title: "conversations of 5 turns", workload: syntheticWorkload({ fleet, seed: 1, seconds: 1200, load: 0.6 }) },
    {
      title: "single requests",
      workload: syntheticWorkload({ fleet, seed: 1, seconds: 1500, load: 0.6, turns: 1, systemTokens: 0 }),
    },
  ];
  const rows = POLICIES.map((policy) => [
    policy.name,
    ...workloads.map(({ workload }) => {
      const before = process.cpuUsage().user;
      runLab({ fleet, workload, policy, seed: 1, kvTokens: KV_TOKENS });
      const seconds = (process.cpuUsage().user - before) / 1e6;
      return `${(workload.size / seconds / 1000).toFixed(0)} k/s`;
    }),
  ]);
  printTable("speed", ["policy", ...workloads.map(({ title, workload }) => `${title} (${workload.size})`)], rows);
}

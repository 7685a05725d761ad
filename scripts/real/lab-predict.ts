import type { Fleet } from "../../packages/core/src/index.ts";
import { ENDED, POLICIES, runLab, type Workload } from "../../packages/simulator/src/index.ts";
import type { Answer } from "./lab-table.ts";

/** The same fleet file and requests in the lab, which keys land where drawn anew each time. */
export function predict(fleet: Fleet, workload: Workload, runs: number): Answer[][] {
  const policy = POLICIES.find(({ name }) => name === "guidevane")!;
  return Array.from({ length: runs }, (_, run) => {
    const conversation = workload.conversation.map((id) => id + run * workload.size);
    const { tally, fleet: lab } = runLab({
      fleet,
      workload: { ...workload, conversation },
      policy,
      seed: run + 1,
      gatewaysPerCluster: 1,
    });
    return Array.from(tally.ended, (ended, row): Answer | null => {
      if (ended !== ENDED.answered || workload.atMs[row]! < workload.settleMs) return null;
      // The real engines are near: without the network on both sides.
      const networkMs = tally.networkMs[row]!;
      return {
        engine: lab.engines[tally.engine[row]!]!.id,
        ttftMs: tally.ttftMs[row]! - networkMs,
        e2eMs: tally.e2eMs[row]! - networkMs,
        outputTokens: workload.outputTokens[row]!,
      };
    }).filter((answer) => answer !== null);
  });
}

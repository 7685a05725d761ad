import { runLab } from "./lab.ts";
import type { LabOptions } from "./lab-options.ts";
import type { PolicyValues } from "./policy.ts";
import { ENDED } from "./tally.ts";

/**
 * The values of a policy's grid that give the least mean time to the last token on these requests, one not answered
 * counting as `UNANSWERED_MS`. Every combination is run; ties go to the first.
 */
export function tune(options: LabOptions, onRun?: (done: number, of: number) => void): PolicyValues {
  const all = combinations(options.policy.grid);
  let best: PolicyValues = all[0]!;
  if (all.length === 1) return best;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, values] of all.entries()) {
    const costMs = meanCost(runLab({ ...options, values }).tally);
    onRun?.(index + 1, all.length);
    if (costMs >= least) continue;
    least = costMs;
    best = values;
  }
  return best;
}

function meanCost({ workload, ended, e2eMs, arrivedMs }: ReturnType<typeof runLab>["tally"]): number {
  let sum = 0;
  let count = 0;
  for (let row = 0; row < workload.size; row++) {
    if (!(arrivedMs[row]! >= workload.settleMs)) continue;
    sum += ended[row] === ENDED.answered ? e2eMs[row]! : UNANSWERED_MS;
    count += 1;
  }
  return sum / count;
}

const UNANSWERED_MS = 120_000;

function combinations(grid: Readonly<Record<string, readonly number[]>>): PolicyValues[] {
  return Object.entries(grid).reduce<PolicyValues[]>(
    (all, [name, values]) => all.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}],
  );
}

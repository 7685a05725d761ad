import { type Plan, plan } from "@guidevane/optimizer";
import type { SolveTask } from "./solver-pool.ts";

/** Runs in the pool's worker thread. `null` asks only whether the thread has loaded. */
export default function solve(task: SolveTask | null): Plan | null {
  if (task === null) return null;
  return plan(task.inputs, task.previous, null, { deadlineMs: task.deadlineMs });
}

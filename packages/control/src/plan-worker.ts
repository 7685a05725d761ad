import { type BegunPlan, beginPlan, solvePlanParts, verifyCertificate } from "@guidevane/optimizer";
import type { SolveReply, WorkerTask } from "./solver-threads.ts";

/** The plan whose parts are being solved. It stays here: sending it would take longer than its solve. */
let begun: BegunPlan | null = null;

/** Runs in the pool's worker threads. `load` asks only whether the thread has loaded this module. */
export default function work(task: WorkerTask): unknown {
  switch (task.kind) {
    case "load":
      return null;
    case "solve":
      return solve(task);
    case "solve-parts":
      return solvePlanParts(task.parts, "auto", { deadlineMs: task.deadlineMs });
    case "finish": {
      if (begun === null) throw new Error("the thread that began this plan is gone");
      const finished = begun.finish(task.solved);
      begun = null;
      return finished;
    }
    case "verify":
      return verifyCertificate(task.publication);
  }
}

/** One part is solved where it is; several are handed back, for as many threads as there are. */
function solve({ inputs, previous, warm, deadlineMs }: Extract<WorkerTask, { kind: "solve" }>): SolveReply {
  const plan = beginPlan(inputs, previous, warm);
  if ("status" in plan) return plan;
  if (plan.parts.length === 1) return plan.finish(solvePlanParts(plan.parts, "auto", { deadlineMs }));
  begun = plan;
  return { parts: plan.parts };
}

import { plan, verifyPublication } from "@guidevane/optimizer";
import type { WorkerTask } from "./solver-pool.ts";

/** Runs in the pool's worker thread. `load` asks only whether the thread has loaded this module. */
export default function work(task: WorkerTask): unknown {
  switch (task.kind) {
    case "load":
      return null;
    case "solve":
      return plan(task.inputs, task.previous, task.warm, { deadlineMs: task.deadlineMs });
    case "verify":
      return verifyPublication(task.publication);
  }
}

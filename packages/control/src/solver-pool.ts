import type { Clock, Publication, StoredPublication } from "@guidevane/core";
import type { Plan, PlanInputs, PlanWarm } from "@guidevane/optimizer";
import { createWorkerPool, type Failure, type LoadTask } from "./worker-pool.ts";

/** How a solve came back: with a plan (whose status says the rest), or without. */
export type SolveOutcome = { readonly kind: "plan"; readonly plan: Plan } | Failure;

/** What is wrong with a publication, a sentence each; none = gateways may route by it. */
export type VerifyOutcome = { readonly kind: "faults"; readonly faults: readonly string[] } | Failure;

/** Solves and verifies off the event loop. A failure is an outcome, never an exception. */
export interface Solver {
  /** @param warm `Plan.warm` of the plan before; the thread that solved it may be gone */
  solve(
    inputs: PlanInputs,
    previous: StoredPublication | null,
    warm: PlanWarm | null,
    deadlineMs: number,
  ): Promise<SolveOutcome>;
  /** Recomputes what the publication claims, on a path of its own. */
  verify(publication: Publication): Promise<VerifyOutcome>;
  close(): Promise<void>;
}

/** What goes to the worker, and what comes back. */
export type WorkerTask =
  | LoadTask
  | {
      readonly kind: "solve";
      readonly inputs: PlanInputs;
      readonly previous: StoredPublication | null;
      readonly warm: PlanWarm | null;
      readonly deadlineMs: number;
    }
  | { readonly kind: "verify"; readonly publication: Publication };

/** Verification takes a quarter of a second for 128 engines and 64 cells. */
const VERIFY_MS = 10_000;

/** Past the deadline by this much the worker is ended: a solver that polls its deadline comes back by itself before. */
const GRACE_MS = 250;

/** One worker thread, one task at a time: see `createWorkerPool`. */
export function createSolverPool(clock: Clock, worker: URL = PLAN_WORKER): Solver {
  const pool = createWorkerPool<WorkerTask>(clock, worker);
  return {
    async solve(inputs, previous, warm, deadlineMs) {
      const outcome = await pool.run<Plan>(
        { kind: "solve", inputs, previous, warm, deadlineMs },
        deadlineMs + GRACE_MS,
      );
      return "result" in outcome ? { kind: "plan", plan: outcome.result } : outcome;
    },
    async verify(publication) {
      const outcome = await pool.run<string[]>({ kind: "verify", publication }, VERIFY_MS);
      return "result" in outcome ? { kind: "faults", faults: outcome.result } : outcome;
    },
    async close() {
      await pool.close();
    },
  };
}

/** Beside this file, as source or as built. */
const PLAN_WORKER = new URL(import.meta.url.endsWith(".ts") ? "./plan-worker.ts" : "./plan-worker.js", import.meta.url);

import type { Clock, StoredPublication } from "@guidevane/core";
import type { Plan, PlanInputs } from "@guidevane/optimizer";
import { Piscina } from "piscina";

/** How a solve came back: with a plan (whose status says the rest), or without. */
export type SolveOutcome =
  | { readonly kind: "plan"; readonly plan: Plan }
  | { readonly kind: "deadline"; readonly message: string }
  | { readonly kind: "crashed"; readonly message: string };

/** Solves off the event loop. A failure is an outcome, never an exception. */
export interface Solver {
  solve(inputs: PlanInputs, previous: StoredPublication | null, deadlineMs: number): Promise<SolveOutcome>;
  close(): Promise<void>;
}

/** What goes to the worker; null only asks whether it is there. */
export interface SolveTask {
  readonly inputs: PlanInputs;
  readonly previous: StoredPublication | null;
  readonly deadlineMs: number;
}

/** A new worker may take this long to load: reading modules is not solving, and is not under the solve's deadline. */
const LOAD_MS = 30_000;

/** Past the deadline by this much the worker is ended: a solver that polls its deadline comes back by itself before. */
const GRACE_MS = 250;

/**
 * One worker thread that solves, one task at a time. Past its deadline the thread is ended, which is the only way to stop
 * a solver that does not look at the time; the next solve gets a new thread.
 */
export function createSolverPool(clock: Clock, worker: URL = PLAN_WORKER): Solver {
  const pool = new Piscina<SolveTask | null, Plan | null>({
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
  });
  // A worker that dies between tasks tells only the pool; the next solve starts another, and its outcome is what counts.
  pool.on("error", () => {});

  const run = async (task: SolveTask | null, limitMs: number): Promise<Plan | null> => {
    const abort = new AbortController();
    const cancel = clock.after(limitMs, () => abort.abort());
    try {
      // Named here and not in the pool's options: then a module that can't be loaded fails the task and says why, and
      // not a thread that the pool would start again and again.
      return await pool.run(task, { filename: worker.href, signal: abort.signal });
    } finally {
      cancel();
    }
  };

  return {
    async solve(inputs, previous, deadlineMs) {
      const startMs = clock.nowMs();
      try {
        await run(null, LOAD_MS);
        const plan = await run({ inputs, previous, deadlineMs }, deadlineMs + GRACE_MS);
        if (plan === null) return { kind: "crashed", message: "the worker gave no plan" };
        return { kind: "plan", plan };
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return error instanceof Error && error.name === "AbortError"
          ? { kind: "deadline", message: `ended after ${Math.round(clock.nowMs() - startMs)} ms` }
          : { kind: "crashed", message };
      }
    },
    async close() {
      await pool.destroy();
    },
  };
}

/** Beside this file, as source or as built. */
const PLAN_WORKER = new URL(import.meta.url.endsWith(".ts") ? "./plan-worker.ts" : "./plan-worker.js", import.meta.url);

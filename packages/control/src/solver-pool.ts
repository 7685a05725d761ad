import type { Clock, Publication, StoredPublication } from "@guidevane/core";
import type { Plan, PlanInputs, PlanWarm } from "@guidevane/optimizer";
import { Piscina } from "piscina";

/** How a solve came back: with a plan (whose status says the rest), or without. */
export type SolveOutcome =
  | { readonly kind: "plan"; readonly plan: Plan }
  | { readonly kind: "deadline"; readonly message: string }
  | { readonly kind: "crashed"; readonly message: string };

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
  | { readonly kind: "load" }
  | {
      readonly kind: "solve";
      readonly inputs: PlanInputs;
      readonly previous: StoredPublication | null;
      readonly warm: PlanWarm | null;
      readonly deadlineMs: number;
    }
  | { readonly kind: "verify"; readonly publication: Publication };

/** A new worker may take this long to load: reading modules is not solving, and is not under the solve's deadline. */
const LOAD_MS = 30_000;

/** Verification takes a quarter of a second for 128 engines and 64 cells. */
const VERIFY_MS = 10_000;

/** Past the deadline by this much the worker is ended: a solver that polls its deadline comes back by itself before. */
const GRACE_MS = 250;

/**
 * One worker thread, one task at a time. Past its deadline the thread is ended, which is the only way to stop
 * a solver that does not look at the time; the next solve gets a new thread.
 */
export function createSolverPool(clock: Clock, worker: URL = PLAN_WORKER): Solver {
  const pool = new Piscina<WorkerTask, unknown>({
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
  });
  // A worker that dies between tasks tells only the pool; the next task starts another, and its outcome is what counts.
  pool.on("error", () => {});

  /** Runs a task in the thread, after a new one has loaded. */
  async function run<Result>(task: WorkerTask, limitMs: number): Promise<{ result: Result } | Failure> {
    const startMs = clock.nowMs();
    try {
      await runWithin(LOAD_MS, { kind: "load" });
      return { result: (await runWithin(limitMs, task)) as Result };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return error instanceof Error && error.name === "AbortError"
        ? { kind: "deadline", message: `ended after ${Math.round(clock.nowMs() - startMs)} ms` }
        : { kind: "crashed", message };
    }
  }

  async function runWithin(limitMs: number, task: WorkerTask): Promise<unknown> {
    const abort = new AbortController();
    const cancel = clock.after(limitMs, () => abort.abort());
    try {
      // Named here and not in the pool's options: then a module that can't be loaded fails the task and says why, and
      // not a thread that the pool would start again and again.
      return await pool.run(task, { filename: worker.href, signal: abort.signal });
    } finally {
      cancel();
    }
  }

  return {
    async solve(inputs, previous, warm, deadlineMs) {
      const outcome = await run<Plan>({ kind: "solve", inputs, previous, warm, deadlineMs }, deadlineMs + GRACE_MS);
      return "result" in outcome ? { kind: "plan", plan: outcome.result } : outcome;
    },
    async verify(publication) {
      const outcome = await run<string[]>({ kind: "verify", publication }, VERIFY_MS);
      return "result" in outcome ? { kind: "faults", faults: outcome.result } : outcome;
    },
    async close() {
      await pool.destroy();
    },
  };
}

type Failure = Exclude<SolveOutcome, { kind: "plan" }>;

/** Beside this file, as source or as built. */
const PLAN_WORKER = new URL(import.meta.url.endsWith(".ts") ? "./plan-worker.ts" : "./plan-worker.js", import.meta.url);

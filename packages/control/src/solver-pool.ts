import type { Clock, Publication, StoredPublication } from "@guidevane/core";
import type { Plan, PlanInputs, PlanWarm } from "@guidevane/optimizer";
import { createSolverThreads, GRACE_MS, type SolveReply } from "./solver-threads.ts";
import type { Failure } from "./worker-pool.ts";

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

/** Verification takes a quarter of a second for 128 engines and 64 cells. */
const VERIFY_MS = 10_000;
/** Rings and certificate of a large fleet are no part of the solve's time. */
const FINISH_MS = 10_000;

/** All but the first of the threads are started when a problem first has parts to solve at the same time. */
export function createSolverPool(clock: Clock, worker?: URL, threads?: number): Solver {
  const pool = createSolverThreads(clock, worker, threads);
  return {
    async solve(inputs, previous, warm, deadlineMs) {
      const startMs = clock.nowMs();
      const task = { kind: "solve", inputs, previous, warm, deadlineMs } as const;
      const begun = await pool.first.run<SolveReply>(task, deadlineMs + GRACE_MS);
      if (!("result" in begun)) return begun;
      if (!("parts" in begun.result)) return { kind: "plan", plan: begun.result };
      const solved = await pool.solveParts(begun.result.parts, Math.max(0, deadlineMs - (clock.nowMs() - startMs)));
      if (!("result" in solved)) return solved;
      const finished = await pool.first.run<Plan>({ kind: "finish", solved: solved.result }, FINISH_MS);
      return "result" in finished ? { kind: "plan", plan: finished.result } : finished;
    },
    async verify(publication) {
      const outcome = await pool.first.run<string[]>({ kind: "verify", publication }, VERIFY_MS);
      return "result" in outcome ? { kind: "faults", faults: outcome.result } : outcome;
    },
    close: () => pool.close(),
  };
}

import { availableParallelism } from "node:os";
import type { Clock, Publication, StoredPublication } from "@guidevane/core";
import { type Plan, type PlanInputs, type PlanPart, type PlanWarm, type Solved, sizeOf } from "@guidevane/optimizer";
import { createWorkerPool, type Failure, type LoadTask, type WorkerPool } from "./worker-pool.ts";

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
  | { readonly kind: "solve-parts"; readonly parts: readonly PlanPart[]; readonly deadlineMs: number }
  | { readonly kind: "finish"; readonly solved: readonly Solved[] }
  | { readonly kind: "verify"; readonly publication: Publication };

/** What `solve` gives: the plan, or its parts where there are several, which the thread that made them will finish. */
export type SolveReply = Plan | { readonly parts: readonly PlanPart[] };

/** The threads that solve: the first does what comes one at a time, all of them parts of a problem. */
export interface SolverThreads {
  readonly first: WorkerPool<WorkerTask>;
  /** One answer to each part, in order; a failure where any thread failed. */
  solveParts(parts: readonly PlanPart[], deadlineMs: number): Promise<{ readonly result: readonly Solved[] } | Failure>;
  close(): Promise<void>;
}

/** Past the deadline by this much the worker is ended: a solver that polls its deadline comes back by itself before. */
export const GRACE_MS = 250;

/** More threads than this would sooner be in each other's way than save time. */
const MOST_THREADS = 8;

/** Each thread is a pool of its own, so that one that hangs or dies is ended and started again without the others. */
export function createSolverThreads(
  clock: Clock,
  worker: URL = PLAN_WORKER,
  threads: number = Math.min(MOST_THREADS, availableParallelism()),
): SolverThreads {
  const pools = Array.from({ length: threads }, () => createWorkerPool<WorkerTask>(clock, worker));
  return {
    first: pools[0]!,
    async solveParts(parts, deadlineMs) {
      const solved: Solved[] = [];
      const shared = shareOut(parts.map(sizeOf), pools.length);
      const outcomes = await Promise.all(
        shared.map(async (numbers, thread) => {
          const task = { kind: "solve-parts", parts: numbers.map((number) => parts[number]!), deadlineMs } as const;
          const outcome = await pools[thread]!.run<Solved[]>(task, deadlineMs + GRACE_MS);
          if ("result" in outcome) for (const [at, number] of numbers.entries()) solved[number] = outcome.result[at]!;
          return outcome;
        }),
      );
      return outcomes.find((outcome) => "kind" in outcome) ?? { result: solved };
    },
    async close() {
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}

/** Numbers of the parts for each thread, by falling size to whoever has least; no thread without one. */
export function shareOut(sizes: readonly number[], threads: number): number[][] {
  const shared = Array.from({ length: Math.min(threads, sizes.length) }, () => ({ size: 0, numbers: [] as number[] }));
  for (const number of sizes.map((_, at) => at).sort((a, b) => sizes[b]! - sizes[a]!)) {
    const least = shared.reduce((best, each) => (each.size < best.size ? each : best));
    least.size += sizes[number]!;
    least.numbers.push(number);
  }
  return shared.map(({ numbers }) => numbers);
}

/** Beside this file, as source or as built. */
const PLAN_WORKER = new URL(import.meta.url.endsWith(".ts") ? "./plan-worker.ts" : "./plan-worker.js", import.meta.url);

import type { Clock } from "@guidevane/core";
import { Piscina } from "piscina";

/** A task that did not come to its end: past its limit, or its thread died. */
export interface Failure {
  readonly kind: "deadline" | "crashed";
  readonly message: string;
}

/** One worker thread, one task at a time. */
export interface WorkerPool<Task> {
  /** Runs a task, after a new thread has loaded. A failure is an outcome, never an exception. */
  run<Result>(task: Task, limitMs: number): Promise<{ readonly result: Result } | Failure>;
  close(): Promise<void>;
}

/** Asks a worker only whether it has loaded its module. Every worker answers it. */
export interface LoadTask {
  readonly kind: "load";
}

/** A new worker may take this long to load: reading modules is not solving, and is not under a task's limit. */
const LOAD_MS = 30_000;

/**
 * Past its limit the thread is ended, which is the only way to stop code that does not look at the time; the next task
 * gets a new thread.
 */
export function createWorkerPool<Task>(clock: Clock, worker: URL): WorkerPool<Task> {
  const pool = new Piscina<Task | LoadTask, unknown>({
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
  });
  // A worker that dies between tasks tells only the pool; the next task starts another, and its outcome is what counts.
  pool.on("error", () => {});

  async function runWithin(limitMs: number, task: Task | LoadTask): Promise<unknown> {
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
    async run<Result>(task: Task, limitMs: number) {
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
    },
    close: () => pool.destroy(),
  };
}

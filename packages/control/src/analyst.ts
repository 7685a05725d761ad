import type { Clock, Publication } from "@guidevane/core";
import type { Explanation } from "@guidevane/optimizer";
import { createWorkerPool, type Failure, type LoadTask } from "./worker-pool.ts";

/** How a question came back: `refused` where it names what is not there. */
export type Analysis<Answer> =
  | { readonly kind: "answer"; readonly answer: Answer }
  | { readonly kind: "refused"; readonly message: string }
  | Failure;

/** Answers questions about plans in a thread of its own, beside the loop that makes them. Nothing of it is published. */
export interface Analyst {
  explain(publication: Publication, cell: CellName, engine?: string): Promise<Analysis<Explanation>>;
  close(): Promise<void>;
}

export interface CellName {
  readonly cluster: string;
  readonly class: string;
}

/** What goes to the worker. */
export type AnalysisTask =
  | LoadTask
  | { readonly kind: "explain"; readonly publication: Publication; readonly cell: CellName; readonly engine?: string };

/** What comes back: an error that names what is wrong crosses as its words. */
export type AnalysisReply = { readonly answer: unknown } | { readonly refused: string };

/** A person waits for it. */
const LIMIT_MS = 30_000;

export function createAnalyst(clock: Clock, worker: URL = ANALYSIS_WORKER): Analyst {
  const pool = createWorkerPool<AnalysisTask>(clock, worker);

  async function ask<Answer>(task: AnalysisTask): Promise<Analysis<Answer>> {
    const outcome = await pool.run<AnalysisReply>(task, LIMIT_MS);
    if (!("result" in outcome)) return outcome;
    const { result } = outcome;
    return "refused" in result
      ? { kind: "refused", message: result.refused }
      : { kind: "answer", answer: result.answer as Answer };
  }

  return {
    explain: (publication, cell, engine) =>
      ask({ kind: "explain", publication, cell, ...(engine === undefined ? {} : { engine }) }),
    close: () => pool.close(),
  };
}

/** Beside this file, as source or as built. */
const ANALYSIS_WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "./analysis-worker.ts" : "./analysis-worker.js",
  import.meta.url,
);

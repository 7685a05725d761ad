import type { Clock, Publication, StoredPublication } from "@guidevane/core";
import type { Change, Diff, Explanation, PlanInputs, WhatIf } from "@guidevane/optimizer";
import { createWorkerPool, type Failure, type LoadTask } from "./worker-pool.ts";

/** How a question came back: `refused` where it names what is not there. */
export type Analysis<Answer> =
  | { readonly kind: "answer"; readonly answer: Answer }
  | { readonly kind: "refused"; readonly message: string }
  | Failure;

/** Answers questions about plans in a thread of its own, beside the loop that makes them. Nothing of it is published. */
export interface Analyst {
  explain(publication: Publication, cell: CellName, engine?: string): Promise<Analysis<Explanation>>;
  /** What changed from one publication to the other, and how much of each weight's move each change explains. */
  diff(from: StoredPublication, to: StoredPublication): Promise<Analysis<Diff>>;
  /** The plan of these inputs, and that of the changed ones. */
  whatIf(inputs: PlanInputs, changes: readonly Change[], previous: StoredPublication | null): Promise<Analysis<WhatIf>>;
  close(): Promise<void>;
}

export interface CellName {
  readonly cluster: string;
  readonly class: string;
}

/** What goes to the worker. */
export type AnalysisTask =
  | LoadTask
  | { readonly kind: "explain"; readonly publication: Publication; readonly cell: CellName; readonly engine?: string }
  | { readonly kind: "diff"; readonly from: StoredPublication; readonly to: StoredPublication }
  | {
      readonly kind: "what-if";
      readonly inputs: PlanInputs;
      readonly changes: readonly Change[];
      readonly previous: StoredPublication | null;
      /** Of each of its two solves. */
      readonly deadlineMs: number;
    };

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
    diff: (from, to) => ask({ kind: "diff", from, to }),
    whatIf: (inputs, changes, previous) =>
      ask({ kind: "what-if", inputs, changes, previous, deadlineMs: inputs.fleet.policy.solveMs }),
    close: () => pool.close(),
  };
}

/** Beside this file, as source or as built. */
const ANALYSIS_WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "./analysis-worker.ts" : "./analysis-worker.js",
  import.meta.url,
);

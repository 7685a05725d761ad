import { GuidevaneError } from "@guidevane/core";
import { diff, explain, whatIf } from "@guidevane/optimizer";
import type { AnalysisReply, AnalysisTask } from "./analyst.ts";

/** Runs in the analyst's worker thread. */
export default function work(task: AnalysisTask): AnalysisReply {
  try {
    return { answer: answer(task) };
  } catch (error) {
    // Of an error only the words cross between threads; other errors are faults of this program and fail the task.
    if (GuidevaneError.is(error)) return { refused: error.message };
    throw error;
  }
}

function answer(task: AnalysisTask): unknown {
  switch (task.kind) {
    case "load":
      return null;
    case "explain":
      return explain(task.publication, task.cell.cluster, task.cell.class, task.engine);
    case "diff":
      return diff(task.from, task.to);
    case "what-if":
      return whatIf(task.inputs, task.changes, task.previous, { deadlineMs: task.deadlineMs });
  }
}

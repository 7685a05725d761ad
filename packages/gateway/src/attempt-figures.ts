import type { Outcome } from "@guidevane/core";
import type { AttemptReport } from "./attempt-result.ts";
import type { EngineFailure } from "./engine-client.ts";
import type { AnswerObserver } from "./observer.ts";

/** What is measured of one attempt while it runs. Times are ms from its beginning; null = it has not come to that. */
export class AttemptFigures {
  readonly startMs: number;
  connectMs: number | null = null;
  status: number | null = null;
  headMs: number | null = null;
  firstTokenMs: number | null = null;
  retryAfterMs: number | null = null;
  bytes = 0;
  failure: EngineFailure | null = null;

  constructor(startMs: number) {
    this.startMs = startMs;
  }

  report(outcome: Outcome, nowMs: number, observer: AnswerObserver | null): AttemptReport {
    const { connectMs, status, headMs, firstTokenMs, retryAfterMs, bytes, failure } = this;
    const endMs = nowMs - this.startMs;
    const answer = observer?.facts() ?? null;
    return { outcome, status, connectMs, headMs, firstTokenMs, endMs, bytes, failure, retryAfterMs, answer };
  }
}

import type { AnswerError } from "./answer-error.ts";

/** What was read of one answer. Plain data. */
export interface AnswerFacts {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
  /**
   * Where the tokens are from: `usage` of a whole answer; `partial`: usage of one that broke off; `events`: no usage, and
   * `completionTokens` counts events with content, which an engine may fill with several tokens.
   */
  readonly tokensFrom: "usage" | "partial" | "events" | null;
  /** The last finish reason, stop reason or status, as the engine wrote it. */
  readonly finish: string | null;
  /** Id of an answer of the Responses API. */
  readonly responseId: string | null;
  /** When the first event with content was whole, by the clock of `see`. Null for an answer that is no stream. */
  readonly firstContentMs: number | null;
  /** Mean time between output tokens, ms: by the tokens of the usage, else by events. */
  readonly tbotMs: number | null;
  readonly contentEvents: number;
  /** Events that are not what they should be: no JSON, or cut off. */
  readonly malformedEvents: number;
  readonly error: AnswerError | null;
  /** Why nothing could be read, such as `content-encoding gzip`; null = it could. */
  readonly unread: string | null;
}

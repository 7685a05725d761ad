import type { Outcome } from "@guidevane/core";
import { outcomeOfStatus } from "@guidevane/guard";
import type { AttemptOptions, KeptAnswer } from "./attempt-result.ts";
import type { EngineHead } from "./client-answer.ts";
import { headerOf } from "./headers.ts";
import { AnswerObserver } from "./observer.ts";

/** What an engine has answered so far: its head, what is read of its body, and the body itself while it is kept back. */
export class EngineAnswer {
  /** Without its headers once they went to the client. */
  #head: EngineHead;
  readonly #endsByClose: boolean;
  readonly #servesModel: boolean;
  readonly observer: AnswerObserver;
  /** The body so far, while nothing of it went to the client. */
  #kept: Buffer[] = [];

  constructor(
    { status, statusText, headers }: EngineHead,
    options: Pick<AttemptOptions, "choices" | "servesModel" | "onObserverFailure" | "onResponseId">,
  ) {
    this.#head = { status, statusText: printable(statusText), headers };
    this.#endsByClose = endsByClose(this.#head);
    this.#servesModel = options.servesModel;
    this.observer = new AnswerObserver(
      status,
      headers,
      (error) => options.onObserverFailure(error),
      options.choices,
      (id) => options.onResponseId(id),
    );
  }

  /** Whether it is a stream of events whose first one may still be an error. */
  get maybeRefused(): boolean {
    return this.#head.status === 200 && this.observer.kind === "events";
  }

  /** The status that a stream which begins with an error is taken for; null = it does not. */
  get firstErrorStatus(): number | null {
    const { failedAt, error } = this.observer;
    return error !== null && failedAt === 1 ? statusOfErrorEvent(error.status) : null;
  }

  /** Whether it is cut off, if its connection closes now: without a length or chunks that is the only end there is. */
  get isCutByClose(): boolean {
    return this.#endsByClose && this.observer.kind !== "unread" && !this.observer.whole;
  }

  /** How it went, by its status and by what it said of itself, if it is over now. */
  get outcome(): Outcome {
    const { status } = this.#head;
    const { kind, error, whole } = this.observer;
    if (status !== 200 || kind !== "events") return outcomeOfStatus(status, this.#servesModel);
    if (error !== null) return outcomeOfStatus(statusOfErrorEvent(error.status), this.#servesModel);
    return whole ? "success" : "fault";
  }

  /** @param chunk need not outlast this call */
  keep(chunk: Buffer): void {
    this.#kept.push(Buffer.from(chunk));
  }

  /** The head, which goes to the client. */
  takeHead(): EngineHead {
    const head = this.#head;
    this.#head = { status: head.status, statusText: "", headers: NONE };
    return head;
  }

  /** What was kept, which goes to the client. */
  takeKept(): readonly Buffer[] {
    const kept = this.#kept;
    this.#kept = [];
    return kept;
  }

  /** All of it, while nothing of it went to the client. */
  whole(): KeptAnswer {
    return { ...this.#head, body: Buffer.concat(this.#kept) };
  }
}

const NONE: readonly string[] = [];

/**
 * What an error event is taken for that comes in an answer's place: its status where that is a refusal, else a 502. A
 * status line would say more of whose fault it is; an engine that puts an error into a 200 has most likely lost its core.
 */
function statusOfErrorEvent(status: number): number {
  return status === 503 || (status >= 400 && status < 500 && status !== 408) ? status : 502;
}

/** Whether nothing but the closing of its connection can end an answer with this head. */
function endsByClose({ status, headers }: EngineHead): boolean {
  if (status === 204 || status === 304) return false;
  return (headerOf(headers, "content-length") ?? headerOf(headers, "transfer-encoding")) === undefined;
}

/** A status text without the characters that the parser lets in and that must not leave again (RFC 9112 §4). */
function printable(statusText: string): string {
  return statusText.replace(UNPRINTABLE, "");
}

const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/g;

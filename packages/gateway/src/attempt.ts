import type { Outcome } from "@guidevane/core";
import type { Next } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import {
  BROKE_OFF,
  DEADLINE,
  endOf,
  endsByClose,
  NO_DESCRIPTORS,
  outcomeOfAnswer,
  printable,
  retryAfterMsOf,
  statusOfErrorEvent,
} from "./attempt-end.ts";
import { AttemptFigures } from "./attempt-figures.ts";
import { AFTER_TERMINATOR_MS, DEAD_SILENCE_MS, HELD_MAX_BYTES, KEPT_MAX_BYTES, KEPT_MAX_MS } from "./attempt-limits.ts";
import type { AttemptOptions, AttemptReport, AttemptResult } from "./attempt-result.ts";
import { ClientAnswer, type ClientPace, type EngineHead } from "./client-answer.ts";
import type { EngineCall, EngineEvents, EngineFailure } from "./engine-client.ts";
import type { AttemptUnderWay } from "./engines.ts";
import { AnswerObserver } from "./observer.ts";
import { PhaseTimer } from "./phase-timer.ts";

type Phase =
  /** For the answer's head. */
  | "waiting"
  /** The head of an event stream is held: its first event may still be an error. */
  | "held"
  /** The answer is kept back as a whole, because another attempt follows. */
  | "kept"
  | "passing"
  | "over";

/** Sends one request to one engine and, if the answer is to be the client's, passes it on as it comes. */
export class Attempt implements EngineEvents, AttemptUnderWay, ClientPace {
  place = -1;
  readonly #options: AttemptOptions;
  readonly #answer: ClientAnswer;
  readonly #timer: PhaseTimer;
  readonly #figures: AttemptFigures;
  #phase: Phase = "waiting";
  #call: EngineCall | null = null;
  /** Without its headers once they went to the client. */
  #head: EngineHead | null = null;
  #endsByClose = false;
  #observer: AnswerObserver | null = null;
  /** The body so far, while nothing of it went to the client. */
  #kept: Buffer[] = [];
  #next: Next = { retry: false };
  /** The engine's port refuses; the timer has its short time and is not to be set anew. */
  #engineDead = false;
  /** The stream has said that it is over; the timer has the time for its end. */
  #terminated = false;
  #stops: (() => void)[] = [];

  constructor(options: AttemptOptions) {
    const { clock } = options;
    this.#options = options;
    this.#figures = new AttemptFigures(clock.nowMs());
    this.#timer = new PhaseTimer(clock);
    this.#answer = new ClientAnswer(options, this);
  }

  start(): void {
    const { client, clock, deadlineAtMs } = this.#options;
    this.#options.whenGone(() => this.#onClientGone());
    if (deadlineAtMs !== null)
      this.#stops.push(clock.after(deadlineAtMs - this.#figures.startMs, () => this.#giveUp(DEADLINE, "cancelled")));
    const call = client.send(this.#options.engineRequest(), this);
    if (this.#phase === "over") call.abort();
    else this.#call = call;
  }

  bytes(): number {
    return this.#figures.bytes;
  }

  onFull(): void {
    this.#call?.pause();
    this.#timer.rest(true);
  }

  onRoom(): void {
    this.#timer.rest(false);
    this.#call?.resume();
  }

  engineDied(): void {
    if (this.#phase === "over") return;
    this.#engineDead = true;
    this.#timer.touch(this.#options.clock.nowMs());
    this.#armIdle(Math.min(DEAD_SILENCE_MS, this.#options.timers.idleMs));
  }

  onSent(connectMs: number | null): void {
    const { clock, timers, stream } = this.#options;
    this.#figures.connectMs = connectMs;
    const [ms, what] = stream ? [timers.firstTokenMs, "no first token"] : [timers.headMs, "no answer"];
    this.#timer.arm(ms, () => this.#onSlow(`${what} after ${ms} ms`));
    if (timers.totalMs > 0)
      this.#stops.push(clock.after(timers.totalMs, () => this.#expire(`not over after ${timers.totalMs} ms`)));
  }

  onHead(status: number, rawStatusText: string, headers: readonly string[]): void {
    const options = this.#options;
    const { clock, timers, choices } = options;
    const nowMs = clock.nowMs();
    this.#head = { status, statusText: printable(rawStatusText), headers };
    this.#endsByClose = endsByClose(this.#head);
    this.#figures.status = status;
    this.#figures.headMs = nowMs - this.#figures.startMs;
    this.#timer.touch(nowMs);
    this.#figures.retryAfterMs = retryAfterMsOf(headers, clock);
    this.#observer = new AnswerObserver(
      status,
      headers,
      (error) => options.onObserverFailure(error),
      choices,
      (id) => options.onResponseId(id),
    );
    if (status !== 200 || this.#observer.kind !== "events") {
      this.#judge(status);
      return;
    }
    this.#phase = "held";
    this.#stops.push(clock.after(timers.holdHeadMs, () => this.#phase === "held" && this.#commit()));
  }

  onData(chunk: Buffer): void {
    const nowMs = this.#options.clock.nowMs();
    this.#figures.bytes += chunk.length;
    this.#timer.touch(nowMs);
    this.#observer?.see(chunk, nowMs);
    this.#noteFirstToken(nowMs);
    if (this.#phase === "passing") {
      this.#answer.write(chunk);
      this.#watchTerminator();
      return;
    }
    this.#kept.push(Buffer.from(chunk));
    if (this.#phase === "held") this.#judgeFirstEvent();
    else if (this.#figures.bytes > KEPT_MAX_BYTES) this.#commit();
  }

  onEnd(): void {
    this.#observer?.end();
    // An error without the empty line after it is the first event all the same.
    if (this.#phase === "held") this.#judgeFirstEvent();
    if (this.#phase === "kept") this.#settle(this.#retry(this.#head));
    // Without a length or chunks a closed connection is the only end there is, and a dying engine closes too.
    else if (this.#endsByClose && this.#observer!.kind !== "unread" && !this.#observer!.whole)
      this.onFail({ kind: "closed", message: "the connection was closed before the answer's end" });
    else {
      if (this.#phase === "held") this.#commit();
      this.#end();
    }
  }

  onFail(failure: EngineFailure): void {
    this.#figures.failure = failure;
    if (this.#phase === "passing") {
      // What the client has is whole after its terminator; only the engine's end of it is not.
      if (this.#observer!.terminated && this.#answer.open) this.#end();
      else this.#giveUp(BROKE_OFF, "fault", "cut");
    } else if (failure.kind === "no-descriptors") this.#giveUp(NO_DESCRIPTORS, "rejected");
    else {
      if (this.#phase !== "kept") this.#next = this.#options.decide(endOf(failure));
      if (this.#next.retry === false) this.#giveUp(BROKE_OFF, "fault");
      else this.#settle(this.#retry(null));
    }
  }

  #judgeFirstEvent(): void {
    const { events, failedAt, error } = this.#observer!;
    if (error !== null && failedAt === 1) this.#judge(statusOfErrorEvent(error.status));
    else if (events > 0 || this.#figures.bytes > HELD_MAX_BYTES) this.#commit();
  }

  /** By its status, or by that of the error in its place: is this the client's answer? */
  #judge(status: number): void {
    const { servesModel } = this.#options;
    this.#next = this.#options.decide({
      kind: "answer",
      status,
      servesModel,
      retryAfterMs: this.#figures.retryAfterMs,
    });
    if (this.#next.retry === false) {
      this.#commit();
      return;
    }
    this.#phase = "kept";
    this.#timer.arm(KEPT_MAX_MS, () => this.#expire(`a refusal that did not end after ${KEPT_MAX_MS} ms`));
  }

  #commit(): void {
    const { timers, stream } = this.#options;
    this.#phase = "passing";
    const head = this.#head!;
    this.#answer.begin(head);
    this.#head = { status: head.status, statusText: "", headers: NONE };
    this.#options.onCommit();
    for (const chunk of this.#kept) this.#answer.write(chunk);
    this.#kept = [];
    // Until its first token a stream has the time that it was given for that.
    const waits = stream && this.#figures.firstTokenMs === null && !this.#observer!.failed;
    if (!this.#engineDead && !waits) this.#armIdle(timers.idleMs);
    this.#watchTerminator();
  }

  #noteFirstToken(nowMs: number): void {
    if (!this.#options.stream || this.#figures.firstTokenMs !== null) return;
    const observer = this.#observer!;
    if (observer.kind === "events" && observer.firstContentMs === null) return;
    this.#figures.firstTokenMs = nowMs - this.#figures.startMs;
    this.#options.onFirstToken(this.#figures.firstTokenMs);
    if (this.#phase !== "kept" && !this.#engineDead) this.#armIdle(this.#options.timers.idleMs);
  }

  #watchTerminator(): void {
    if (this.#terminated || this.#observer?.terminated !== true) return;
    this.#terminated = true;
    this.#timer.arm(AFTER_TERMINATOR_MS, () => {
      this.#call?.abort();
      this.#end();
    });
  }

  /** The client's answer ends in good order. */
  #end(): void {
    this.#answer.end();
    const outcome = outcomeOfAnswer(this.#head, this.#observer, this.#options.servesModel);
    this.#settle({ kind: "over", report: this.#report(outcome) });
  }

  #armIdle(idleMs: number): void {
    this.#timer.armIdle(idleMs, () => this.#expire(`silent for ${idleMs} ms`));
  }

  /** The time for the first token or the head is up. Events without content, or a slow client, speak for the engine. */
  #onSlow(why: string): void {
    const alive = this.#phase === "passing" && (this.#answer.full || this.#observer!.events > 0);
    if (alive) this.#armIdle(this.#options.timers.idleMs);
    else this.#expire(why);
  }

  #expire(why: string): void {
    this.#figures.failure = { kind: "closed", message: why };
    const error: ApiError = { status: 504, code: "engine_timeout", message: `the engine was too slow: ${why}` };
    if (this.#phase === "waiting" || this.#phase === "held")
      this.#next = this.#options.decide({ kind: this.#engineDead ? "closed" : "timer" });
    if (this.#phase === "passing" || this.#next.retry === false) this.#giveUp(error, "fault");
    else {
      this.#call?.abort();
      this.#settle(this.#retry(null));
    }
  }

  /** Ends the attempt, and no other follows. A stream that has begun says so where it can, anything else is cut. */
  #giveUp(error: ApiError, outcome: Outcome, how: "say" | "cut" = "say"): void {
    if (this.#phase === "over") return;
    this.#call?.abort();
    const report = this.#report(outcome);
    if (this.#phase !== "passing") {
      this.#settle({ kind: "failed", error, report });
      return;
    }
    const observer = this.#observer!;
    if (how === "say" && observer.kind === "events" && this.#answer.open)
      this.#answer.end(`${observer.betweenEvents ? "" : "\n\n"}${this.#options.breakOff(error)}`);
    else this.#answer.cut();
    this.#settle({ kind: "over", report });
  }

  #onClientGone(): void {
    if (this.#phase === "over") return;
    this.#call?.abort();
    this.#answer.abandon();
    this.#settle({ kind: "over", report: this.#report("cancelled") });
  }

  #retry(head: EngineHead | null): AttemptResult {
    const kept = head === null ? null : { ...head, body: Buffer.concat(this.#kept) };
    const outcome = outcomeOfAnswer(this.#head, this.#observer, this.#options.servesModel);
    return { kind: "retry", next: this.#next, kept, report: this.#report(outcome) };
  }

  #report(outcome: Outcome): AttemptReport {
    return this.#figures.report(outcome, this.#options.clock.nowMs(), this.#observer);
  }

  #settle(result: AttemptResult): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#timer.stop();
    for (const stop of this.#stops) stop();
    this.#options.whenGone(null);
    this.#options.onOver(result);
  }
}

const NONE: readonly string[] = [];

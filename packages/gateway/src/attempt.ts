import type { Outcome } from "@guidevane/core";
import type { Next } from "@guidevane/guard";
import type { ApiError } from "./api-error.ts";
import { BROKE_OFF, DEADLINE, endOf, NO_DESCRIPTORS, retryAfterMsOf } from "./attempt-end.ts";
import { AttemptFigures } from "./attempt-figures.ts";
import { AFTER_TERMINATOR_MS, DEAD_SILENCE_MS, HELD_MAX_BYTES, KEPT_MAX_BYTES, KEPT_MAX_MS } from "./attempt-limits.ts";
import type { AttemptOptions, AttemptReport, AttemptResult, KeptAnswer } from "./attempt-result.ts";
import { ClientAnswer, type ClientPace } from "./client-answer.ts";
import { EngineAnswer } from "./engine-answer.ts";
import type { EngineCall, EngineEvents, EngineFailure } from "./engine-client.ts";
import type { AttemptUnderWay } from "./engines.ts";
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
  readonly #toClient: ClientAnswer;
  readonly #timer: PhaseTimer;
  readonly #figures: AttemptFigures;
  #phase: Phase = "waiting";
  #call: EngineCall | null = null;
  /** Null until its head has come. */
  #fromEngine: EngineAnswer | null = null;
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
    this.#toClient = new ClientAnswer(options, this);
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

  onHead(status: number, statusText: string, headers: readonly string[]): void {
    const options = this.#options;
    const { clock, timers } = options;
    const nowMs = clock.nowMs();
    this.#figures.status = status;
    this.#figures.headMs = nowMs - this.#figures.startMs;
    this.#timer.touch(nowMs);
    this.#figures.retryAfterMs = retryAfterMsOf(headers, clock);
    this.#fromEngine = new EngineAnswer({ status, statusText, headers }, options);
    if (!this.#fromEngine.maybeRefused) {
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
    const answer = this.#fromEngine!;
    answer.observer.see(chunk, nowMs);
    this.#noteFirstToken(nowMs);
    if (this.#phase === "passing") {
      this.#toClient.write(chunk);
      this.#watchTerminator();
      return;
    }
    answer.keep(chunk);
    if (this.#phase === "held") this.#judgeFirstEvent();
    else if (this.#figures.bytes > KEPT_MAX_BYTES) this.#commit();
  }

  onEnd(): void {
    const answer = this.#fromEngine!;
    answer.observer.end();
    // An error without the empty line after it is the first event all the same.
    if (this.#phase === "held") this.#judgeFirstEvent();
    if (this.#phase === "kept") this.#settle(this.#retry(answer.whole()));
    // A dying engine closes its connections too.
    else if (answer.isCutByClose)
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
      if (this.#fromEngine!.observer.terminated && this.#toClient.open) this.#end();
      else this.#giveUp(BROKE_OFF, "fault", "cut");
    } else if (failure.kind === "no-descriptors") this.#giveUp(NO_DESCRIPTORS, "rejected");
    else {
      if (this.#phase !== "kept") this.#next = this.#options.decide(endOf(failure));
      if (this.#next.retry === false) this.#giveUp(BROKE_OFF, "fault");
      else this.#settle(this.#retry(null));
    }
  }

  #judgeFirstEvent(): void {
    const { firstErrorStatus, observer } = this.#fromEngine!;
    if (firstErrorStatus !== null) this.#judge(firstErrorStatus);
    else if (observer.events > 0 || this.#figures.bytes > HELD_MAX_BYTES) this.#commit();
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
    const answer = this.#fromEngine!;
    this.#toClient.begin(answer.takeHead());
    this.#options.onCommit();
    for (const chunk of answer.takeKept()) this.#toClient.write(chunk);
    // Until its first token a stream has the time that it was given for that.
    const waits = stream && this.#figures.firstTokenMs === null && !answer.observer.failed;
    if (!this.#engineDead && !waits) this.#armIdle(timers.idleMs);
    this.#watchTerminator();
  }

  #noteFirstToken(nowMs: number): void {
    if (!this.#options.stream || this.#figures.firstTokenMs !== null) return;
    const { observer } = this.#fromEngine!;
    if (observer.kind === "events" && observer.firstContentMs === null) return;
    this.#figures.firstTokenMs = nowMs - this.#figures.startMs;
    this.#options.onFirstToken(this.#figures.firstTokenMs);
    if (this.#phase !== "kept" && !this.#engineDead) this.#armIdle(this.#options.timers.idleMs);
  }

  #watchTerminator(): void {
    if (this.#terminated || !this.#fromEngine!.observer.terminated) return;
    this.#terminated = true;
    this.#timer.arm(AFTER_TERMINATOR_MS, () => {
      this.#call?.abort();
      this.#end();
    });
  }

  /** The client's answer ends in good order. */
  #end(): void {
    this.#toClient.end();
    this.#settle({ kind: "over", report: this.#report(this.#fromEngine!.outcome) });
  }

  #armIdle(idleMs: number): void {
    this.#timer.armIdle(idleMs, () => this.#expire(`silent for ${idleMs} ms`));
  }

  /** The time for the first token or the head is up. Events without content, or a slow client, speak for the engine. */
  #onSlow(why: string): void {
    const alive = this.#phase === "passing" && (this.#toClient.full || this.#fromEngine!.observer.events > 0);
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
    const { observer } = this.#fromEngine!;
    if (how === "say" && observer.kind === "events" && this.#toClient.open)
      this.#toClient.end(`${observer.betweenEvents ? "" : "\n\n"}${this.#options.breakOff(error)}`);
    else this.#toClient.cut();
    this.#settle({ kind: "over", report });
  }

  #onClientGone(): void {
    if (this.#phase === "over") return;
    this.#call?.abort();
    this.#toClient.abandon();
    this.#settle({ kind: "over", report: this.#report("cancelled") });
  }

  /** @param kept the whole answer, for the client if it comes to no better one */
  #retry(kept: KeptAnswer | null): AttemptResult {
    const outcome = this.#fromEngine?.outcome ?? "fault";
    return { kind: "retry", next: this.#next, kept, report: this.#report(outcome) };
  }

  #report(outcome: Outcome): AttemptReport {
    return this.#figures.report(outcome, this.#options.clock.nowMs(), this.#fromEngine?.observer ?? null);
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

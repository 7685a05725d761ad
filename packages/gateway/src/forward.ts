import type { Clock, Fleet, Outcome, Random } from "@guidevane/core";
import type { Next, RetryBudget } from "@guidevane/guard";
import { OUT, ROUTE_STATUS, TRIED_MAX } from "@guidevane/selector";
import { countAnswer } from "./answer-metrics.ts";
import { type ApiError, writeError } from "./api-error.ts";
import { DEADLINE } from "./attempt-end.ts";
import type { AttemptReport, AttemptResult } from "./attempt-result.ts";
import type { Chooser } from "./chooser.ts";
import { passOn } from "./client-answer.ts";
import { Course, type CourseOwner } from "./course.ts";
import { expectedTtftMs } from "./deadline.ts";
import type { Arrivals } from "./demand.ts";
import type { Engine, Engines } from "./engines.ts";
import { answerHeaders, type Choice, choiceHeaders, type Exchange, ownAnswer, readChoice } from "./exchange.ts";
import type { GuardAdmission } from "./guard-admission.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";
import { shedError, UNREACHABLE } from "./refusals.ts";
import type { ThreadNews } from "./request-thread.ts";
import type { ResponseMemory } from "./response-memory.ts";
import type { Routing } from "./routing.ts";
import { waitOrGone } from "./wait-or-gone.ts";

/** What forwarding works with. One per thread. */
export interface ForwardParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Fleet["gateway"];
  readonly engines: Engines;
  readonly retries: RetryBudget;
  readonly admission: GuardAdmission;
  /** Told of every attempt, once each as it begins, gives its first token and ends. */
  readonly news: Pick<ThreadNews, "attemptBegan" | "firstToken" | "attemptEnded">;
  readonly demand: Arrivals;
  readonly metrics: GatewayMetrics;
  /** Which engine gave which answer of the Responses API. */
  readonly responses: ResponseMemory;
}

/** Who hears how requests end. */
export interface ForwardOwner {
  onOver(exchange: Exchange, outcome: Outcome): void;
  /** On an error that nobody foresaw. */
  onError(exchange: Exchange, error: unknown): void;
}

/** Sends a request that was routed to its engine, and to others where that may help, until the client has an answer. */
export class Forwarder implements CourseOwner {
  readonly #parts: ForwardParts;
  readonly #chooser: Chooser;
  /** The chooser's last choice, which holds until the next await. */
  readonly #out: Uint32Array;
  readonly #owner: ForwardOwner;
  /** Attempts made by this thread. */
  #count = 0;

  constructor(parts: ForwardParts, chooser: Chooser, owner: ForwardOwner) {
    this.#parts = parts;
    this.#chooser = chooser;
    this.#out = chooser.out;
    this.#owner = owner;
  }

  /** Attempts, one after the other, until the client has an answer; then the owner is told. `out` holds the first choice. */
  forward(exchange: Exchange): void {
    const course = new Course(this.#parts, exchange, this.#out, this);
    if (!this.#findRoom(exchange, course.tried)) {
      this.#owner.onOver(exchange, this.#shed(exchange));
      return;
    }
    let choice = readChoice(this.#out);
    if (course.tried.length > 0) choice = { ...choice, reason: "bounded" };
    course.budget.firstAttempt();
    const engine = this.#engineAt(exchange.routing, choice.slot);
    if (!exchange.request.socket.destroyed && this.#isTooLate(exchange, engine)) {
      this.#refuse(exchange, engine, choice, DEADLINE);
      this.#owner.onOver(exchange, "rejected");
      return;
    }
    this.#begin(course, engine, choice, false);
  }

  #begin(course: Course, engine: Engine, choice: Choice, fresh: boolean): void {
    // An attempt hears of the client's leaving only from here on.
    if (course.socket.destroyed) this.#owner.onOver(course.exchange, "cancelled");
    else course.begin(this.#count++, engine, choice, fresh);
  }

  onAttempt(course: Course, result: AttemptResult): void {
    const { exchange, budget } = course;
    this.#observe(exchange, course.engine, result.report);
    if (result.kind === "over") {
      budget.settle(false);
      this.#owner.onOver(exchange, result.report.outcome);
      return;
    }
    this.#goOn(course, result).catch((error: unknown) => this.#owner.onError(exchange, error));
  }

  onError({ exchange }: Course, error: unknown): void {
    this.#owner.onError(exchange, error);
  }

  /** Another attempt, or the end without one. */
  async #goOn(course: Course, result: Exclude<AttemptResult, { kind: "over" }>): Promise<void> {
    const { exchange, engine, choice, budget } = course;
    const next: Next = result.kind === "retry" ? result.next : { retry: false };
    if (next.retry === "fresh") {
      course.freshTried = true;
      this.#begin(course, engine, choice, true);
      return;
    }
    if (result.kind === "retry" && result.kept !== null)
      course.last = { kept: result.kept, headers: answerHeaders(exchange, engine.id, choice) };
    course.tried.push(choice.slot);
    const again = next.retry === "other" && (await this.#chooseAgain(exchange, course.tried, next.aloneMs));
    budget.settle(again);
    if (!again) {
      this.#owner.onOver(exchange, this.#giveUp(course, result));
      return;
    }
    course.attempts += 1;
    if (next.retry === "other" && next.free) course.unreached += 1;
    // The only engine, asked again after a pause, is home to the router.
    const other = { ...readChoice(this.#out), reason: "retry" };
    this.#begin(course, this.#engineAt(exchange.routing, other.slot), other, false);
  }

  /** No attempt follows and nothing went to the client: it gets the last answer as it was, or an error of the gateway's. */
  #giveUp({ exchange, engine, choice, last }: Course, result: AttemptResult): Outcome {
    if (exchange.request.socket.destroyed) return "cancelled";
    const { outcome } = result.report;
    if (result.kind === "failed" && outcome !== "fault") this.#refuse(exchange, engine, choice, result.error);
    else if (last !== null) passOn(exchange.response, last.kept, last.headers);
    else this.#refuse(exchange, engine, choice, result.kind === "failed" ? result.error : UNREACHABLE);
    return outcome;
  }

  #refuse(exchange: Exchange, engine: Engine, choice: Choice, error: ApiError): void {
    exchange.decision.error = error.code;
    writeError(exchange.response, error, ownAnswer(exchange, choiceHeaders(exchange, engine.id, choice)));
  }

  /** Another engine at once, or the only one there is after a pause. False when there is no engine to try. */
  async #chooseAgain(exchange: Exchange, tried: number[], aloneMs: number | null): Promise<boolean> {
    const { socket } = exchange.request;
    if (socket.destroyed) return false;
    if (this.#chooser.choose(exchange, tried) === ROUTE_STATUS.ok)
      return this.#findRoom(exchange, tried) && this.#isWorthAsking(exchange);
    if (aloneMs === null) return false;
    await waitOrGone(socket, this.#parts.clock, aloneMs);
    if (socket.destroyed) return false;
    tried.length = 0;
    if (this.#chooser.choose(exchange, tried) !== ROUTE_STATUS.ok) return false;
    return this.#findRoom(exchange, tried) && this.#isWorthAsking(exchange);
  }

  /** Passes over engines that hold as many requests as they may; false when all do. `out` holds the choice, then another. */
  #findRoom(exchange: Exchange, tried: number[]): boolean {
    const { routing } = exchange;
    for (;;) {
      const slot = this.#out[OUT.engine]!;
      if (!this.#parts.admission.isFull(routing, routing.engineAt(slot), slot)) return true;
      tried.push(slot);
      if (tried.length >= TRIED_MAX || this.#chooser.choose(exchange, tried) !== ROUTE_STATUS.ok) return false;
    }
  }

  /** Every engine that could serve it is full. */
  #shed(exchange: Exchange): Outcome {
    const { metrics, demand, random } = this.#parts;
    if (exchange.className !== undefined) demand.shed(exchange.className);
    metrics.shed.inc(exchange.className ?? OTHER, "engine-limit");
    const error = shedError("engine-limit", random());
    exchange.decision.error = error.code;
    exchange.decision.shed = "engine-limit";
    writeError(exchange.response, error, ownAnswer(exchange));
    return "shed";
  }

  /** The engine in `out`: neither one that asked to be left alone for long, nor one too slow for the time that is left. */
  #isWorthAsking(exchange: Exchange): boolean {
    const slot = this.#out[OUT.engine]!;
    const { routing } = exchange;
    return !routing.isCoolingLong(slot) && !this.#isTooLate(exchange, this.#engineAt(routing, slot));
  }

  #isTooLate({ deadlineAtMs, routing, className }: Exchange, { id }: Engine): boolean {
    if (deadlineAtMs === null) return false;
    const ttftMs = className === undefined ? 0 : expectedTtftMs(routing.snapshot, className, id);
    return deadlineAtMs - this.#parts.clock.nowMs() < ttftMs;
  }

  #engineAt(routing: Routing, slot: number): Engine {
    const id = routing.engineAt(slot);
    const engine = id === null ? undefined : this.#parts.engines.get(id);
    if (engine === undefined) throw new Error(`slot ${slot} has no engine in snapshot ${routing.snapshot.version}`);
    return engine;
  }

  #observe({ className, arrivedMs, decision }: Exchange, { id }: Engine, report: AttemptReport): void {
    const { metrics } = this.#parts;
    metrics.attempts.inc(id, report.outcome);
    countAnswer(metrics, className, arrivedMs, report);
    const firstContentMs = report.answer?.firstContentMs ?? null;
    decision.ttftMs = firstContentMs === null ? null : firstContentMs - arrivedMs;
  }
}

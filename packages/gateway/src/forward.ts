import type { Clock, Fleet, Outcome, Random } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next, type RetryBudget } from "@guidevane/guard";
import { OUT, ROUTE_STATUS, type RouteStatus, TRIED_MAX } from "@guidevane/selector";
import { countAnswer } from "./answer-metrics.ts";
import { type ApiError, streamError, writeError } from "./api-error.ts";
import { attempt } from "./attempt.ts";
import { DEADLINE } from "./attempt-end.ts";
import type { AttemptReport, AttemptResult, KeptAnswer } from "./attempt-result.ts";
import { passOn } from "./client-answer.ts";
import { expectedTtftMs } from "./deadline.ts";
import type { Arrivals } from "./demand.ts";
import type { Engine, Engines } from "./engines.ts";
import {
  answerHeaders,
  type Choice,
  choiceHeaders,
  type Exchange,
  engineRequest,
  ownAnswer,
  readChoice,
  servesModel,
} from "./exchange.ts";
import type { GuardAdmission } from "./guard-admission.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";
import { shedError, UNREACHABLE } from "./refusals.ts";
import { RequestBudget } from "./request-budget.ts";
import type { ThreadNews } from "./request-thread.ts";
import { engineHash, type ResponseMemory, responseKey } from "./response-memory.ts";
import { type Routing, tenantHash } from "./routing.ts";
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

/** What a request asks of each of its attempts; read before anything waits. */
interface Asked {
  readonly stream: boolean;
  readonly choices: number;
  readonly leavesTrace: boolean;
  readonly promptTokens: number;
}

/** One request's attempts so far. */
interface Course {
  attempts: number;
  /** Attempts that reached no engine. */
  unreached: number;
  freshTried: boolean;
  /** State slots of engines that need not be asked again. */
  readonly tried: number[];
  /** The last whole answer that was kept back, and the gateway's headers on it. */
  last: { readonly kept: KeptAnswer; readonly headers: readonly string[] } | null;
}

/** Sends a request that was routed to its engine, and to others where that may help, until the client has an answer. */
export class Forwarder {
  readonly #parts: ForwardParts;
  readonly #out: Uint32Array;
  readonly #choose: (exchange: Exchange, tried: readonly number[]) => RouteStatus;
  /** Attempts made by this thread. */
  #count = 0;

  /** @param choose writes its choice to `out`, which holds until the next await */
  constructor(
    parts: ForwardParts,
    out: Uint32Array,
    choose: (exchange: Exchange, tried: readonly number[]) => RouteStatus,
  ) {
    this.#parts = parts;
    this.#out = out;
    this.#choose = choose;
  }

  /** Attempts, one after the other, until the client has an answer. `out` holds the first choice. */
  async forward(exchange: Exchange): Promise<Outcome> {
    const { request, routing } = exchange;
    const asked = readAsked(this.#out, exchange);
    const budget = new RequestBudget(this.#parts, exchange);
    const course: Course = { attempts: 1, unreached: 0, freshTried: false, tried: [], last: null };
    if (!this.#findRoom(exchange, course.tried)) return this.#shed(exchange);
    let choice = readChoice(this.#out);
    if (course.tried.length > 0) choice = { ...choice, reason: "bounded" };
    let fresh = false;
    budget.firstAttempt();
    for (;;) {
      // An attempt hears of the client's leaving only from here on.
      if (request.socket.destroyed) return "cancelled";
      const engine = this.#engineAt(routing, choice.slot);
      if (course.attempts === 1 && !fresh && this.#isTooLate(exchange, engine)) {
        this.#refuse(exchange, engine, choice, DEADLINE);
        return "rejected";
      }
      const result = await this.#attempt(exchange, asked, course, budget, engine, choice, fresh);
      if (result.kind === "over") {
        budget.settle(false);
        return result.report.outcome;
      }
      const next: Next = result.kind === "retry" ? result.next : { retry: false };
      if (next.retry === "fresh") {
        course.freshTried = true;
        fresh = true;
        continue;
      }
      if (result.kind === "retry" && result.kept !== null)
        course.last = { kept: result.kept, headers: answerHeaders(exchange, engine.id, choice) };
      course.tried.push(choice.slot);
      const again = next.retry === "other" && (await this.#chooseAgain(exchange, course.tried, next.aloneMs));
      budget.settle(again);
      if (!again) return this.#giveUp(exchange, course, engine, choice, result);
      // The only engine, asked again after a pause, is home to the router.
      choice = { ...readChoice(this.#out), reason: "retry" };
      course.attempts += 1;
      if (next.retry === "other" && next.free) course.unreached += 1;
      fresh = false;
    }
  }

  async #attempt(
    exchange: Exchange,
    asked: Asked,
    course: Course,
    budget: RequestBudget,
    engine: Engine,
    choice: Choice,
    fresh: boolean,
  ): Promise<AttemptResult> {
    const { settings, random, engines, clock, metrics, news, admission } = this.#parts;
    const { request, response, routing, requestId, manner } = exchange;
    const { attempts, unreached, freshTried } = course;
    const attemptsMax = settings.retry.attempts;
    const seen = { attempts, unreached, attemptsMax, freshTried, leavesTrace: asked.leavesTrace };
    const number = this.#count++;
    metrics.placed.inc(choice.reason);
    routing.countStream(choice.requestClass, choice.slot, 1);
    admission.countAttempt(choice.slot, 1);
    news.attemptBegan(number, {
      engine: engine.id,
      requestClass: exchange.className ?? OTHER,
      promptTokens: asked.stream ? asked.promptTokens : null,
    });
    try {
      const running = attempt({
        client: engine.client,
        socket: request.socket,
        response,
        clock,
        request: engineRequest(exchange, engine, fresh),
        timers: this.#timersOf(exchange),
        deadlineAtMs: exchange.deadlineAtMs,
        stream: asked.stream,
        choices: asked.choices,
        servesModel: servesModel(exchange, engine),
        answerHeaders: answerHeaders(exchange, engine.id, choice),
        breakOff: (error: ApiError): string => streamError(manner.dialect, error, requestId),
        decide: (end: AttemptEnd): Next => budget.allow(afterAttempt(end, seen, random())),
        onCommit: () => {
          exchange.body = EMPTY;
          exchange.text = EMPTY;
          exchange.share.release();
        },
        onFirstToken: (ttftMs) => news.firstToken(number, ttftMs),
        onResponseId: (id) => this.#remember(exchange, engine, id),
        onObserverFailure: () => metrics.observerFailures.inc(),
      });
      engines.began(engine.id, running);
      const result = await running.result;
      engines.ended(engine.id, running);
      news.attemptEnded(number, engine.id, result.report);
      exchange.attempts.push({ engine: engine.id, reason: choice.reason, ...result.report });
      this.#observe(exchange, engine, result.report);
      return result;
    } finally {
      routing.countStream(choice.requestClass, choice.slot, -1);
      admission.countAttempt(choice.slot, -1);
    }
  }

  /** No attempt follows and nothing went to the client: it gets the last answer as it was, or an error of the gateway's. */
  #giveUp(exchange: Exchange, { last }: Course, engine: Engine, choice: Choice, result: AttemptResult): Outcome {
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
    if (this.#choose(exchange, tried) === ROUTE_STATUS.ok)
      return this.#findRoom(exchange, tried) && this.#isWorthAsking(exchange);
    if (aloneMs === null) return false;
    await waitOrGone(socket, this.#parts.clock, aloneMs);
    if (socket.destroyed) return false;
    tried.length = 0;
    if (this.#choose(exchange, tried) !== ROUTE_STATUS.ok) return false;
    return this.#findRoom(exchange, tried) && this.#isWorthAsking(exchange);
  }

  /** Passes over engines that hold as many requests as they may; false when all do. `out` holds the choice, then another. */
  #findRoom(exchange: Exchange, tried: number[]): boolean {
    const { routing } = exchange;
    for (;;) {
      const slot = this.#out[OUT.engine]!;
      if (!this.#parts.admission.isFull(routing, routing.engineAt(slot), slot)) return true;
      tried.push(slot);
      if (tried.length >= TRIED_MAX || this.#choose(exchange, tried) !== ROUTE_STATUS.ok) return false;
    }
  }

  /** Every engine that could serve it is full. */
  #shed(exchange: Exchange): Outcome {
    const { metrics, demand, random } = this.#parts;
    if (exchange.className !== undefined) demand.shed(exchange.className);
    metrics.shed.inc(exchange.className ?? OTHER, "engine-limit");
    const error = shedError("engine-limit", random());
    exchange.decision.error = error.code;
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

  #timersOf({ className, routing }: Exchange): Fleet["gateway"]["timers"] {
    const { timers } = this.#parts.settings;
    const own = className === undefined ? null : (routing.snapshot.classes[className]?.firstTokenMs ?? null);
    return own === null ? timers : { ...timers, firstTokenMs: own };
  }

  #observe({ className, arrivedMs, decision }: Exchange, { id }: Engine, report: AttemptReport): void {
    const { metrics } = this.#parts;
    metrics.attempts.inc(id, report.outcome);
    countAnswer(metrics, className, arrivedMs, report);
    const firstContentMs = report.answer?.firstContentMs ?? null;
    decision.ttftMs = firstContentMs === null ? null : firstContentMs - arrivedMs;
  }

  /** The request that goes on from this answer will be sent there. */
  #remember({ head }: Exchange, { id }: Engine, responseId: string): void {
    const { responses, clock } = this.#parts;
    const bytes = Buffer.from(responseId);
    responses.remember(
      responseKey(bytes, 0, bytes.length, tenantHash(head.tenant)),
      engineHash(id),
      clock.nowMs() / 1000,
    );
  }
}

const EMPTY = Buffer.alloc(0);

function readAsked(out: Uint32Array, { text }: Exchange): Asked {
  return {
    stream: out[OUT.stream] === 1,
    choices: out[OUT.choices]!,
    leavesTrace: out[OUT.store] === 1 || out[OUT.background] === 1,
    // About four bytes a token, as the selector counts them.
    promptTokens: text.length / 4,
  };
}

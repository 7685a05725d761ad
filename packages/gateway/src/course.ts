import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Fleet } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next } from "@guidevane/guard";
import { OUT } from "@guidevane/selector";
import { type ApiError, streamError } from "./api-error.ts";
import { Attempt } from "./attempt.ts";
import type { AttemptOptions, AttemptReport, AttemptResult, KeptAnswer } from "./attempt-result.ts";
import type { EngineClient, EngineRequest } from "./engine-client.ts";
import type { Engine } from "./engines.ts";
import {
  type AttemptRecord,
  answerHeaders,
  type Choice,
  type Exchange,
  engineRequest,
  servesModel,
} from "./exchange.ts";
import type { ForwardParts } from "./forward.ts";
import { OTHER } from "./metrics.ts";
import { RequestBudget } from "./request-budget.ts";
import { engineHash, responseKey } from "./response-memory.ts";
import { tenantHash } from "./routing.ts";

/** Told how a course goes on. */
export interface CourseOwner {
  /** The attempt at hand is over. */
  onAttempt(course: Course, result: AttemptResult): void;
  onError(course: Course, error: unknown): void;
}

/** One request's attempts: what is the same for all of them, and the one at hand, which asks and tells it. */
export class Course implements AttemptOptions {
  readonly exchange: Exchange;
  readonly budget: RequestBudget;
  attempts = 1;
  /** Attempts that reached no engine. */
  unreached = 0;
  freshTried = false;
  /** State slots of engines that need not be asked again. */
  readonly tried: number[] = [];
  /** The last whole answer that was kept back, and the gateway's headers on it. */
  last: { readonly kept: KeptAnswer; readonly headers: readonly string[] } | null = null;

  // What the request asks of each attempt; read before anything waits.
  readonly stream: boolean;
  readonly choices: number;
  readonly #leavesTrace: boolean;
  readonly #promptTokens: number;

  readonly #parts: ForwardParts;
  readonly #owner: CourseOwner;
  #engine: Engine | null = null;
  #choice: Choice | null = null;
  #fresh = false;
  /** Of the attempt, counted by the thread. */
  #number = 0;
  #running: Attempt | null = null;

  /** @param out holds the first choice */
  constructor(parts: ForwardParts, exchange: Exchange, out: Uint32Array, owner: CourseOwner) {
    this.#parts = parts;
    this.#owner = owner;
    this.exchange = exchange;
    this.budget = new RequestBudget(parts, exchange);
    this.stream = out[OUT.stream] === 1;
    this.choices = out[OUT.choices]!;
    this.#leavesTrace = out[OUT.store] === 1 || out[OUT.background] === 1;
    // About four bytes a token, as the selector counts them.
    this.#promptTokens = exchange.text.length / 4;
  }

  /** The engine of the last attempt. */
  get engine(): Engine {
    return this.#engine!;
  }

  /** Why that one. */
  get choice(): Choice {
    return this.#choice!;
  }

  /** Begins an attempt. @param fresh on a connection of its own */
  begin(number: number, engine: Engine, choice: Choice, fresh: boolean): void {
    const { metrics, admission, news, engines } = this.#parts;
    const { routing, className } = this.exchange;
    this.#number = number;
    this.#engine = engine;
    this.#choice = choice;
    this.#fresh = fresh;
    metrics.placed.inc(choice.reason);
    routing.countStream(choice.requestClass, choice.slot, 1);
    admission.countAttempt(choice.slot, 1);
    news.attemptBegan(number, {
      engine: engine.id,
      requestClass: className ?? OTHER,
      promptTokens: this.stream ? this.#promptTokens : null,
    });
    const running = new Attempt(this);
    this.#running = running;
    engines.began(engine.id, running);
    running.start();
  }

  get client(): EngineClient {
    return this.engine.client;
  }

  get response(): ServerResponse {
    return this.exchange.response;
  }

  get socket(): Socket {
    return this.exchange.request.socket;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  get deadlineAtMs(): number | null {
    return this.exchange.deadlineAtMs;
  }

  get timers(): Fleet["gateway"]["timers"] {
    const { timers } = this.#parts.settings;
    const { className, routing } = this.exchange;
    const own = className === undefined ? null : (routing.snapshot.classes[className]?.firstTokenMs ?? null);
    return own === null ? timers : { ...timers, firstTokenMs: own };
  }

  get servesModel(): boolean {
    return servesModel(this.exchange, this.engine);
  }

  get answerHeaders(): readonly string[] {
    return answerHeaders(this.exchange, this.engine.id, this.choice);
  }

  engineRequest(): EngineRequest {
    return engineRequest(this.exchange, this.engine, this.#fresh);
  }

  breakOff(error: ApiError): string {
    const { manner, requestId } = this.exchange;
    return streamError(manner.dialect, error, requestId);
  }

  decide(end: AttemptEnd): Next {
    const { settings, random } = this.#parts;
    const { attempts, unreached, freshTried } = this;
    const attemptsMax = settings.retry.attempts;
    const seen = { attempts, unreached, attemptsMax, freshTried, leavesTrace: this.#leavesTrace };
    return this.budget.allow(afterAttempt(end, seen, random()));
  }

  whenGone(task: (() => void) | null): void {
    this.exchange.request.onGone = task;
  }

  onCommit(): void {
    const { exchange } = this;
    exchange.body = EMPTY;
    exchange.text = EMPTY;
    exchange.share.release();
  }

  onFirstToken(ttftMs: number): void {
    this.#parts.news.firstToken(this.#number, ttftMs);
  }

  /** The request that goes on from this answer will be sent there. */
  onResponseId(id: string): void {
    const { responses, clock } = this.#parts;
    const bytes = Buffer.from(id);
    const key = responseKey(bytes, 0, bytes.length, tenantHash(this.exchange.head.tenant));
    responses.remember(key, engineHash(this.engine.id), clock.nowMs() / 1000);
  }

  onObserverFailure(): void {
    this.#parts.metrics.observerFailures.inc();
  }

  onOver(result: AttemptResult): void {
    const { engines, news, admission } = this.#parts;
    const { exchange, engine, choice } = this;
    engines.ended(engine.id, this.#running!);
    this.#running = null;
    exchange.routing.countStream(choice.requestClass, choice.slot, -1);
    admission.countAttempt(choice.slot, -1);
    try {
      news.attemptEnded(this.#number, engine.id, result.report);
      exchange.attempts.push(recordOf(engine.id, choice.reason, result.report));
      this.#owner.onAttempt(this, result);
    } catch (error) {
      this.#owner.onError(this, error);
    }
  }
}

const EMPTY: Buffer = Buffer.alloc(0);

/** Field by field: to spread a report takes ten times as long. */
function recordOf(engine: string, reason: string, report: AttemptReport): AttemptRecord {
  const { outcome, status, connectMs, headMs, firstTokenMs, endMs, bytes, failure, retryAfterMs, answer } = report;
  return {
    engine,
    reason,
    outcome,
    status,
    connectMs,
    headMs,
    firstTokenMs,
    endMs,
    bytes,
    failure,
    retryAfterMs,
    answer,
  };
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Fleet, Outcome, Random } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next, plannedShed } from "@guidevane/guard";
import { type HeadFacts, NO_CLASS, OUT, OUT_WORDS, ROUTE_STATUS, type RouteStatus } from "@guidevane/selector";
import { accept, isApiError } from "./accept.ts";
import { type ApiError, writeError } from "./api-error.ts";
import { attempt } from "./attempt.ts";
import type { AttemptReport, HeldAnswer } from "./attempt-result.ts";
import { readable, readBody, refuseEncoding, refuseLength } from "./body.ts";
import type { DemandWindow } from "./demand.ts";
import type { Engine, Engines } from "./engines.ts";
import { answerHeaders, type Exchange, engineRequest, ownHeaders, readChoice, servesModel } from "./exchange.ts";
import { createHeadFacts, fillHead, readHead } from "./head-facts.ts";
import { headersToClient } from "./headers.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";
import { modelsAnswer } from "./models.ts";
import { ignoreLateError, refuseUnread, shedError, UNREACHABLE, unroutable } from "./refusals.ts";
import { requestIdOf } from "./request-id.ts";
import type { Routing } from "./routing.ts";

/** What the request path works with. One per thread. */
export interface RouteParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Fleet["gateway"];
  /** The snapshot in use now. */
  readonly routing: () => Routing;
  readonly sinceControlMs: () => number;
  readonly engines: Engines;
  /** Told of every attempt's end. */
  readonly attemptEnded: (engine: string, report: AttemptReport) => void;
  readonly demand: DemandWindow;
  readonly metrics: GatewayMetrics;
  /** Told of an error that nobody foresaw; the client has had its 500. */
  readonly onError: (error: unknown, requestId: string) => void;
}

/**
 * The request path: read, classify, choose an engine, forward, try another one if that may help, count how it went. It
 * waits for the client and for engines, never for the control plane.
 */
export function createRoute(parts: RouteParts): (request: IncomingMessage, response: ServerResponse) => void {
  const path = new RequestPath(parts);
  return (request, response) => {
    const requestId = requestIdOf(request.headers["x-request-id"] as string | undefined, parts.clock, parts.random);
    path.serve(request, response, requestId).catch((error: unknown) => {
      parts.onError(error, requestId);
      if (response.headersSent) response.destroy();
      else writeError(response, INTERNAL, { "x-request-id": requestId });
    });
  };
}

const INTERNAL: ApiError = {
  status: 500,
  code: "internal_error",
  message: "the gateway failed on this request",
  close: true,
};

class RequestPath {
  readonly #parts: RouteParts;
  // One request at a time is between filling and reading these: nothing awaits in between.
  readonly #facts: HeadFacts = createHeadFacts();
  readonly #out: Uint32Array = new Uint32Array(OUT_WORDS);

  constructor(parts: RouteParts) {
    this.#parts = parts;
  }

  /** Reads the head and the body; what can't be served ends here, unseen by any engine. */
  async serve(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { clock, settings } = this.#parts;
    const arrivedMs = clock.nowMs();
    response.on("error", ignoreLateError);
    const refuse = (error: ApiError): void => {
      this.#count(undefined, "rejected");
      refuseUnread(request, response, error, requestId, clock);
    };

    const accepted = accept(request);
    if (isApiError(accepted)) return refuse(accepted);
    if (accepted.kind === "models")
      return modelsAnswer(response, this.#parts.routing().snapshot, accepted.head, { "x-request-id": requestId });
    const encoding = request.headers["content-encoding"];
    const unreadable = refuseEncoding(encoding) ?? refuseLength(request, settings.limits);
    if (unreadable !== null) return refuse(unreadable);
    if (request.headers.expect !== undefined) response.writeContinue();

    const body = await readBody(request, settings.limits, clock);
    if (body.kind === "gone") return this.#count(undefined, "cancelled");
    if (body.kind === "refused") return refuse(body.error);
    const text = await readable(body.bytes, encoding, settings.limits.bodyBytes);
    if (text.kind === "refused") return refuse(text.error);
    if (request.socket.destroyed) return this.#count(undefined, "cancelled");

    const routing = this.#parts.routing();
    routing.use();
    try {
      await this.#classify({
        request,
        response,
        requestId,
        arrivedMs,
        accepted,
        head: readHead(request.rawHeaders, accepted.pathId, settings),
        routing,
        body: body.bytes,
        text: text.bytes,
        className: undefined,
      });
    } finally {
      routing.done();
    }
  }

  /** Counts the arrival, whatever becomes of it; refuses what no engine can serve and what the plan sheds. */
  async #classify(exchange: Exchange): Promise<void> {
    const { demand, random, metrics, sinceControlMs } = this.#parts;
    const { request, response, routing } = exchange;
    const out = this.#out;
    const status = this.#choose(exchange, []);
    const className = out[OUT.requestClass] === NO_CLASS ? undefined : routing.classAt(out[OUT.requestClass]!);
    const requestClass = className === undefined ? undefined : routing.snapshot.classes[className];
    exchange.className = className;
    if (className !== undefined && requestClass !== undefined)
      demand.arrived(className, requestClass.work, isClientRetry(request));

    if (status !== ROUTE_STATUS.ok) {
      writeError(response, unroutable(exchange, status, out, random()), ownHeaders(exchange));
      return this.#count(exchange, "rejected");
    }
    const shed = routing.snapshot.cells[out[OUT.cell]!]?.shed ?? 0;
    if (plannedShed(shed, out[OUT.keyHash2]!, sinceControlMs())) {
      if (className !== undefined) demand.shed(className);
      metrics.shed.inc({ class: className ?? OTHER, reason: "planned" });
      writeError(response, shedError(random()), ownHeaders(exchange));
      return this.#count(exchange, "shed");
    }
    return this.#forward(exchange);
  }

  /** Attempts, one after the other, until the client has an answer. `out` holds the first choice. */
  async #forward(exchange: Exchange): Promise<void> {
    const { settings, metrics, demand, random, engines, clock } = this.#parts;
    const { request, response, routing } = exchange;
    const out = this.#out;
    const stream = out[OUT.stream] === 1;
    const leavesTrace = out[OUT.store] === 1;
    const tried: number[] = [];
    let choice = readChoice(out);
    let attempts = 1;
    let fresh = false;
    let freshTried = false;
    let lastAnswer: { held: HeldAnswer; headers: readonly string[] } | null = null;
    for (;;) {
      // An attempt hears of the client's leaving only from here on.
      if (request.socket.destroyed) return this.#count(exchange, "cancelled");
      const engine = this.#engineAt(routing, choice.slot);
      const headers = answerHeaders(exchange, engine.id, choice);
      const seen = { attempts, attemptsMax: settings.retry.attempts, freshTried, leavesTrace };
      const startedMs = clock.nowMs();
      metrics.placed.inc({ reason: choice.reason });
      routing.countStream(choice.requestClass, choice.slot, 1);
      const running = attempt({
        client: engine.client,
        socket: request.socket,
        request: engineRequest(exchange, engine, fresh),
        response,
        clock,
        timers: this.#timersOf(exchange),
        stream,
        servesModel: servesModel(exchange, engine),
        answerHeaders: headers,
        decide: (end: AttemptEnd): Next => afterAttempt(end, seen, random()),
        onCommit: () => {
          exchange.body = EMPTY;
          exchange.text = EMPTY;
        },
      });
      engines.began(engine.id, running);
      const result = await running.result;
      routing.countStream(choice.requestClass, choice.slot, -1);
      engines.ended(engine.id, running);
      this.#parts.attemptEnded(engine.id, result.report);
      this.#observe(exchange, engine, result.report, stream ? startedMs : null);

      if (result.kind === "over") return this.#count(exchange, result.report.outcome);
      const next: Next = result.kind === "retry" ? result.next : { retry: false };
      if (next.retry === "fresh") {
        fresh = true;
        freshTried = true;
        continue;
      }
      if (result.kind === "retry" && result.held !== null) lastAnswer = { held: result.held, headers };
      tried.push(choice.slot);
      if (next.retry === "other" && (await this.#chooseAgain(exchange, tried, next.aloneMs))) {
        // The only engine, asked again after a pause, is home to the router.
        choice = { ...readChoice(out), reason: "retry" };
        attempts += 1;
        fresh = false;
        metrics.retries.inc({ result: "spent" });
        if (exchange.className !== undefined) demand.retried(exchange.className);
        continue;
      }

      if (request.socket.destroyed) return this.#count(exchange, "cancelled");
      if (lastAnswer !== null) passOn(response, lastAnswer.held, lastAnswer.headers);
      else {
        const error = result.kind === "failed" ? result.error : UNREACHABLE;
        writeError(response, error, ownHeaders(exchange, headers));
      }
      return this.#count(exchange, result.report.outcome);
    }
  }

  /** Another engine at once, or the only one there is after a pause. False when there is no engine to try. */
  async #chooseAgain(exchange: Exchange, tried: number[], aloneMs: number | null): Promise<boolean> {
    const { socket } = exchange.request;
    if (socket.destroyed) return false;
    if (this.#choose(exchange, tried) === ROUTE_STATUS.ok) return true;
    if (aloneMs === null) return false;
    await waitOrGone(socket, this.#parts.clock, aloneMs);
    if (socket.destroyed) return false;
    tried.length = 0;
    return this.#choose(exchange, tried) === ROUTE_STATUS.ok;
  }

  /** One call of the selector; the choice is in `out` until the next await. */
  #choose(exchange: Exchange, tried: readonly number[]): RouteStatus {
    const { head, routing, text } = exchange;
    const numbers = routing.numbersOf(head);
    if (numbers === null) {
      this.#out[OUT.requestClass] = NO_CLASS;
      return ROUTE_STATUS.noEligibleEngine;
    }
    fillHead(this.#facts, head, numbers, this.#parts.clock.nowMs(), tried);
    const fromMs = performance.now();
    const status = routing.router.route(this.#facts, text, this.#out);
    this.#parts.metrics.routeSeconds.observe((performance.now() - fromMs) / 1000);
    return status;
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

  /** @param streamFromMs when the attempt began, if its answer is a stream */
  #observe(exchange: Exchange, engine: Engine, report: AttemptReport, streamFromMs: number | null): void {
    const { metrics } = this.#parts;
    metrics.attempts.inc({ engine: engine.id, outcome: report.outcome });
    if (streamFromMs === null || report.outcome !== "success" || report.firstByteMs === null) return;
    const ttftMs = streamFromMs + report.firstByteMs - exchange.arrivedMs;
    metrics.ttftSeconds.observe({ class: exchange.className ?? OTHER }, ttftMs / 1000);
  }

  /** The request is over. Undefined where it ended before it was routed. */
  #count(exchange: Exchange | undefined, outcome: Outcome): void {
    const { metrics, clock } = this.#parts;
    const requestClass = exchange?.className ?? OTHER;
    metrics.requests.inc({ class: requestClass, outcome });
    if (exchange === undefined) return;
    metrics.requestSeconds.observe({ class: requestClass }, (clock.nowMs() - exchange.arrivedMs) / 1000);
  }
}

const EMPTY = Buffer.alloc(0);

/** An answer that was kept back goes to the client after all, as it was. */
function passOn(response: ServerResponse, held: HeldAnswer, headers: readonly string[]): void {
  response.sendDate = false;
  response.writeHead(held.status, held.statusText, headersToClient(held.headers, headers));
  response.end(held.body);
}

function waitOrGone(socket: Socket, clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stop();
      socket.off("close", done);
      resolve();
    };
    const stop = clock.after(ms, done);
    socket.on("close", done);
  });
}

function isClientRetry(request: IncomingMessage): boolean {
  return Number(request.headers["x-stainless-retry-count"]) > 0;
}

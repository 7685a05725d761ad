import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, ClusterSnapshot, Fleet, Outcome, Random } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next, plannedShed, retryAfterS } from "@guidevane/guard";
import {
  type HeadFacts,
  KEY_SOURCES,
  NO_CLASS,
  OUT,
  OUT_WORDS,
  REASONS,
  ROUTE_STATUS,
  type RouteStatus,
} from "@guidevane/selector";
import { type Accepted, accept, isApiError } from "./accept.ts";
import { type ApiError, writeError } from "./api-error.ts";
import { type AttemptReport, attempt, type HeldAnswer } from "./attempt.ts";
import { readable, readBody, refuseEncoding, refuseLength } from "./body.ts";
import type { DemandWindow } from "./demand.ts";
import type { Engine, Engines } from "./engines.ts";
import { createHeadFacts, fillHead, type RequestHead, readHead } from "./head-facts.ts";
import { headersToClient, headersToEngine, queryToEngine } from "./headers.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";
import { modelsAnswer } from "./models.ts";
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
  readonly demand: DemandWindow;
  readonly metrics: GatewayMetrics;
  /** Told of an error that nobody foresaw; the client has had its 500. */
  readonly onError: (error: unknown, requestId: string) => void;
}

const EMPTY = Buffer.alloc(0);

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
      else
        writeError(
          response,
          { status: 500, code: "internal_error", message: "the gateway failed on this request", close: true },
          { "x-request-id": requestId },
        );
    });
  };
}

/** One request from its head to its outcome. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly arrivedMs: number;
  readonly accepted: Extract<Accepted, { kind: "inference" }>;
  readonly head: RequestHead;
  readonly routing: Routing;
  /** As the client sent it; let go when the answer's head is sent. */
  body: Buffer;
  /** As JSON text; the same bytes where they were not compressed. */
  text: Buffer;
  className: string | undefined;
}

class RequestPath {
  readonly #parts: RouteParts;
  // One request at a time is between filling and reading them: nothing awaits in between.
  readonly #facts: HeadFacts = createHeadFacts();
  readonly #out: Uint32Array = new Uint32Array(OUT_WORDS);

  constructor(parts: RouteParts) {
    this.#parts = parts;
  }

  async serve(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { clock, settings } = this.#parts;
    const arrivedMs = clock.nowMs();
    response.on("error", ignoreLateError);

    const accepted = accept(request);
    if (isApiError(accepted)) return this.#refuse(request, response, requestId, accepted);
    if (accepted.kind === "models")
      return modelsAnswer(response, this.#parts.routing().snapshot, accepted.head, { "x-request-id": requestId });
    const encoding = request.headers["content-encoding"];
    const cantRead = refuseEncoding(encoding) ?? refuseLength(request, settings.limits);
    if (cantRead !== null) return this.#refuse(request, response, requestId, cantRead);
    if (request.headers.expect !== undefined) response.writeContinue();

    const body = await readBody(request, settings.limits, clock);
    if (body.kind === "gone") return this.#count(undefined, "cancelled");
    if (body.kind === "refused") return this.#refuse(request, response, requestId, body.error);
    const text = await readable(body.bytes, encoding, settings.limits.bodyBytes);
    if (text.kind === "refused") return this.#refuse(request, response, requestId, text.error);
    if (request.socket.destroyed) return this.#count(undefined, "cancelled");

    const exchange: Exchange = {
      request,
      response,
      requestId,
      arrivedMs,
      accepted,
      head: readHead(request.rawHeaders, accepted.pathId, settings),
      routing: this.#parts.routing(),
      body: body.bytes,
      text: text.bytes,
      className: undefined,
    };
    exchange.routing.use();
    try {
      await this.#exchange(exchange);
    } finally {
      exchange.routing.done();
    }
  }

  async #exchange(exchange: Exchange): Promise<void> {
    const { demand, random, metrics, sinceControlMs } = this.#parts;
    const { request, response, routing } = exchange;
    const out = this.#out;
    const status = this.#choose(exchange, []);
    exchange.className = out[OUT.requestClass] === NO_CLASS ? undefined : routing.classAt(out[OUT.requestClass]!);
    const requestClass = exchange.className === undefined ? undefined : routing.snapshot.classes[exchange.className];
    if (exchange.className !== undefined && requestClass !== undefined)
      demand.arrived(exchange.className, requestClass.work, isClientRetry(request));
    if (status !== ROUTE_STATUS.ok) return this.#reject(exchange, this.#unroutable(exchange, status));

    const shed = routing.snapshot.cells[out[OUT.cell]!]?.shed ?? 0;
    if (plannedShed(shed, out[OUT.keyHash2]!, sinceControlMs())) {
      const { className } = exchange;
      if (className !== undefined) demand.shed(className);
      metrics.shed.inc({ class: className ?? OTHER, reason: "planned" });
      writeError(
        response,
        {
          status: 503,
          code: "shed",
          message: "demand is above what the fleet can serve; try again later",
          headers: { "retry-after": String(retryAfterS(random())), "x-guidevane-shed-reason": "planned" },
        },
        this.#ownHeaders(exchange),
      );
      return this.#count(exchange, "shed");
    }
    return this.#attempts(exchange);
  }

  /** Attempts, one after the other, until the client has an answer. `out` holds the first choice. */
  async #attempts(exchange: Exchange): Promise<void> {
    const { settings, metrics, demand, random, engines, clock } = this.#parts;
    const { request, response, routing } = exchange;
    const out = this.#out;
    const tried: number[] = [];
    const stream = out[OUT.stream] === 1;
    const leavesTrace = out[OUT.store] === 1;
    let attempts = 0;
    let freshTried = false;
    let fresh = false;
    let lastAnswer: { held: HeldAnswer; headers: readonly string[] } | null = null;
    for (;;) {
      const slot = out[OUT.engine]!;
      const requestClass = out[OUT.requestClass]!;
      // The only engine, asked again after a pause, is home to the router.
      const reason = attempts > 0 && !fresh ? "retry" : REASONS[out[OUT.reason]!]!;
      const engine = this.#engineAt(routing, slot);
      const headers = this.#answerHeaders(exchange, engine.id, reason, KEY_SOURCES[out[OUT.keySource]!]!);
      if (!fresh) attempts += 1;
      metrics.placed.inc({ reason });
      const seen = { attempts, attemptsMax: settings.retry.attempts, freshTried, leavesTrace };
      routing.countStream(requestClass, slot, 1);
      const startedMs = clock.nowMs();
      const running = attempt({
        client: engine.client,
        socket: request.socket,
        request: this.#engineRequest(exchange, engine, fresh),
        response,
        clock,
        timers: this.#timersOf(exchange),
        stream,
        servesModel: servesModel(engine, exchange, routing.snapshot),
        answerHeaders: headers,
        decide: (end: AttemptEnd): Next => afterAttempt(end, seen, random()),
        onCommit: () => {
          exchange.body = EMPTY;
          exchange.text = EMPTY;
        },
      });
      engines.began(engine.id, running);
      const result = await running.result;
      routing.countStream(requestClass, slot, -1);
      engines.ended(engine.id, running, result.report);
      this.#observe(exchange, engine, result.report, stream ? startedMs : null);

      if (result.kind === "over") return this.#count(exchange, result.report.outcome);
      if (result.kind === "retry" && result.held !== null) lastAnswer = { held: result.held, headers };
      const next = result.kind === "retry" ? result.next : ({ retry: false } as const);
      if (next.retry === "fresh") {
        // The same engine: the choice in `out` may be another request's by now.
        freshTried = true;
        fresh = true;
        if (this.#choose(exchange, tried) === ROUTE_STATUS.ok && out[OUT.engine] === slot) continue;
      }
      fresh = false;
      tried.push(slot);
      if (next.retry !== false && (await this.#chooseAgain(exchange, tried, next))) {
        metrics.retries.inc({ result: "spent" });
        if (exchange.className !== undefined) demand.retried(exchange.className);
        continue;
      }
      if (request.socket.destroyed) return this.#count(exchange, "cancelled");
      if (lastAnswer !== null) passOn(response, lastAnswer.held, lastAnswer.headers);
      else {
        const error = result.kind === "failed" ? result.error : UNREACHABLE;
        writeError(response, error, this.#ownHeaders(exchange, headers));
      }
      return this.#count(exchange, result.report.outcome);
    }
  }

  /** Another engine at once, or the only one there is after a pause. False when there is no engine to try. */
  async #chooseAgain(exchange: Exchange, tried: number[], next: Next): Promise<boolean> {
    const { socket } = exchange.request;
    if (socket.destroyed) return false;
    if (this.#choose(exchange, tried) === ROUTE_STATUS.ok) return true;
    const aloneMs = next.retry === "other" ? next.aloneMs : null;
    if (aloneMs === null) return false;
    await waitOrGone(socket, this.#parts.clock, aloneMs);
    if (socket.destroyed) return false;
    tried.length = 0;
    return this.#choose(exchange, tried) === ROUTE_STATUS.ok;
  }

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

  #engineRequest(exchange: Exchange, engine: Engine, fresh: boolean): Parameters<Engine["client"]["send"]>[0] {
    const { request, requestId, accepted, body } = exchange;
    const { passthrough, headers } = engine.credentials;
    return {
      method: "POST",
      path: `${engine.pathPrefix}${accepted.path}${queryToEngine(accepted.query, passthrough)}`,
      headers: headersToEngine(request.rawHeaders, passthrough, ["x-request-id", requestId, ...headers]),
      body,
      fresh,
    };
  }

  #timersOf(exchange: Exchange): Fleet["gateway"]["timers"] {
    const { timers } = this.#parts.settings;
    const { className, routing } = exchange;
    const own = className === undefined ? null : (routing.snapshot.classes[className]?.firstTokenMs ?? null);
    return own === null ? timers : { ...timers, firstTokenMs: own };
  }

  #answerHeaders(exchange: Exchange, engine: string, reason: string, keySource: string): string[] {
    return [
      "x-request-id",
      exchange.requestId,
      "x-guidevane-engine",
      engine,
      "x-guidevane-snapshot",
      String(exchange.routing.snapshot.version),
      "x-guidevane-reason",
      reason,
      "x-guidevane-key-source",
      keySource,
    ];
  }

  /** The gateway's headers on an answer of its own. */
  #ownHeaders(exchange: Exchange, pairs: readonly string[] = []): Record<string, string> {
    const own: Record<string, string> = {
      "x-request-id": exchange.requestId,
      "x-guidevane-snapshot": String(exchange.routing.snapshot.version),
    };
    for (let i = 0; i + 1 < pairs.length; i += 2) own[pairs[i]!] = pairs[i + 1]!;
    return own;
  }

  #unroutable(exchange: Exchange, status: RouteStatus): ApiError {
    const model = modelNamed(exchange.text, this.#out);
    switch (status) {
      case ROUTE_STATUS.notJson:
        return { status: 400, code: "invalid_json", message: "the body is not a JSON object in UTF-8" };
      case ROUTE_STATUS.tooUnusual:
        return { status: 400, code: "invalid_json", message: "the body's JSON is too unusual for its size" };
      case ROUTE_STATUS.modelRequired:
        return { status: 400, code: "model_required", message: "name a model", param: "model" };
      case ROUTE_STATUS.modelNotFound:
        return {
          status: 404,
          code: "model_not_found",
          message:
            model === null ? "no engine has this model" : `the model ${JSON.stringify(model)} does not exist here`,
          param: "model",
        };
      default: {
        const why = this.#ruledOut(exchange)
          .map(({ engine, message }) => `${engine}: ${message}`)
          .join("; ");
        const named = exchange.head.className === null ? "" : ` of class ${JSON.stringify(exchange.head.className)}`;
        return {
          status: 503,
          code: "no_eligible_engine",
          message: `no engine can serve this request${named}${why === "" ? "" : ` (${why})`}`,
          headers: { "retry-after": String(retryAfterS(this.#parts.random())) },
        };
      }
    }
  }

  #ruledOut({ className, routing, head }: Exchange): ReturnType<Routing["ruledOut"]> {
    if (className === undefined) return [];
    return routing.ruledOut(className, {
      needs: this.#out[OUT.needs]!,
      contextTokens: this.#out[OUT.contextTokens]!,
      residency: head.residency,
      tried: new Set(),
    });
  }

  /** @param streamFromMs when the attempt began, if its answer is a stream */
  #observe(exchange: Exchange, engine: Engine, report: AttemptReport, streamFromMs: number | null): void {
    const { metrics } = this.#parts;
    metrics.attempts.inc({ engine: engine.id, outcome: report.outcome });
    if (streamFromMs === null || report.outcome !== "success" || report.firstByteMs === null) return;
    const ttftMs = streamFromMs + report.firstByteMs - exchange.arrivedMs;
    metrics.ttftSeconds.observe({ class: exchange.className ?? OTHER }, ttftMs / 1000);
  }

  #count(exchange: Exchange | undefined, outcome: Outcome): void {
    const { metrics, clock } = this.#parts;
    const requestClass = exchange?.className ?? OTHER;
    metrics.requests.inc({ class: requestClass, outcome });
    if (exchange !== undefined)
      metrics.requestSeconds.observe({ class: requestClass }, (clock.nowMs() - exchange.arrivedMs) / 1000);
  }

  #reject(exchange: Exchange, error: ApiError): void {
    writeError(exchange.response, error, this.#ownHeaders(exchange));
    this.#count(exchange, "rejected");
  }

  /** Refuses a request before it was routed. */
  #refuse(request: IncomingMessage, response: ServerResponse, requestId: string, error: ApiError): void {
    this.#count(undefined, "rejected");
    refuseUnread(request, response, error, requestId, this.#parts.clock);
  }
}

const UNREACHABLE: ApiError = {
  status: 502,
  code: "engine_unreachable",
  message: "no engine could be reached",
};

/** How long an unwanted rest of a request is read before its connection is closed. */
const LINGER_MS = 1000;

/**
 * Answers a request whose rest is not wanted. Closing at once would reset the connection under a client that is still
 * sending, and the reset can overtake the answer; so the rest is read and thrown away for a moment.
 */
function refuseUnread(
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
  requestId: string,
  clock: Clock,
): void {
  writeError(response, error, { "x-request-id": requestId });
  if (request.complete) return;
  request.on("error", ignoreLateError);
  request.resume();
  const stop = clock.after(LINGER_MS, () => request.socket.destroy());
  request.once("close", stop);
}

/** The client has left; the outcome was counted when its connection closed. */
function ignoreLateError(): void {}

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

function servesModel(engine: Engine, exchange: Exchange, snapshot: ClusterSnapshot): boolean {
  const model = exchange.className === undefined ? undefined : snapshot.classes[exchange.className]?.model;
  return model !== undefined && engine.spec.models.includes(model);
}

function modelNamed(text: Buffer, out: Uint32Array): string | null {
  const [start, end] = [out[OUT.modelStart]!, out[OUT.modelEnd]!];
  return end > start && end <= text.length ? text.toString("utf8", start, Math.min(end, start + 100)) : null;
}

function isClientRetry(request: IncomingMessage): boolean {
  return Number(request.headers["x-stainless-retry-count"]) > 0;
}

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Fleet, Outcome, Random } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next } from "@guidevane/guard";
import { OUT, ROUTE_STATUS, type RouteStatus } from "@guidevane/selector";
import { writeError } from "./api-error.ts";
import { attempt } from "./attempt.ts";
import type { AttemptReport, HeldAnswer } from "./attempt-result.ts";
import type { Arrivals } from "./demand.ts";
import type { Engine, Engines } from "./engines.ts";
import {
  answerHeaders,
  choiceHeaders,
  type Exchange,
  engineRequest,
  ownAnswer,
  readChoice,
  servesModel,
} from "./exchange.ts";
import { headersToClient } from "./headers.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";
import { UNREACHABLE } from "./refusals.ts";
import type { Routing } from "./routing.ts";

/** What forwarding works with. One per thread. */
export interface ForwardParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Fleet["gateway"];
  readonly engines: Engines;
  /** Told of every attempt's end. */
  readonly attemptEnded: (engine: string, report: AttemptReport) => void;
  readonly demand: Arrivals;
  readonly metrics: GatewayMetrics;
}

/** Sends a request that was routed to its engine, and to others where that may help, until the client has an answer. */
export class Forwarder {
  readonly #parts: ForwardParts;
  readonly #out: Uint32Array;
  readonly #choose: (exchange: Exchange, tried: readonly number[]) => RouteStatus;

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
      if (request.socket.destroyed) return "cancelled";
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

      if (result.kind === "over") return result.report.outcome;
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

      if (request.socket.destroyed) return "cancelled";
      if (lastAnswer !== null) passOn(response, lastAnswer.held, lastAnswer.headers);
      else {
        const error = result.kind === "failed" ? result.error : UNREACHABLE;
        writeError(response, error, ownAnswer(exchange, choiceHeaders(exchange, engine.id, choice)));
      }
      return result.report.outcome;
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

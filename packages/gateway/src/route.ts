import type { ServerResponse } from "node:http";
import type { Outcome } from "@guidevane/core";
import type { Admitted, Waiting } from "@guidevane/guard";
import { NO_CLASS, OUT, ROUTE_STATUS } from "@guidevane/selector";
import { resolveAlias } from "./alias.ts";
import { type ApiError, writeError } from "./api-error.ts";
import {
  type BodyParts,
  type BodyRead,
  checkText,
  inflateBody,
  isCompressed,
  type Readable,
  readBody,
} from "./body.ts";
import { BodyMemory, bodyMemoryBytes } from "./body-memory.ts";
import { Chooser } from "./chooser.ts";
import { noteRouting } from "./decision-notes.ts";
import { type Exchange, isClientRetry, ownAnswer } from "./exchange.ts";
import { Forwarder } from "./forward.ts";
import type { FrontRequest } from "./front-request.ts";
import { LoopTurns } from "./loop-turns.ts";
import { OTHER } from "./metrics.ts";
import { countRequest, openExchange, type RouteParts } from "./open-exchange.ts";
import { refuseUnread, shedError, unroutable } from "./refusals.ts";
import { requestIdOf } from "./request-id.ts";
import { RuledOutLists } from "./ruled-out-lists.ts";
import { turnOrGone } from "./wait-or-gone.ts";

/**
 * The request path: read, classify, choose an engine, forward, try another one if that may help, count how it went. It
 * waits for the client and for engines, never for the control plane.
 */
export function createRoute(parts: RouteParts): (request: FrontRequest, response: ServerResponse) => void {
  const path = new RequestPath(parts);
  return (request, response) => {
    const requestId = requestIdOf(request.headers["x-request-id"] as string | undefined, parts.clock, parts.random);
    path.serve(request, response, requestId);
  };
}

const INTERNAL: ApiError = {
  status: 500,
  code: "internal_error",
  message: "the gateway failed on this request",
  close: true,
};

const NONE: readonly never[] = [];

/**
 * Nothing of it is asynchronous but the waiting itself: for the body, for inflating one, in the queue, for the engine. Each
 * wait goes on in one method, and `#end` or `#fail` comes last.
 */
class RequestPath {
  readonly #parts: RouteParts;
  readonly #chooser: Chooser;
  /** The chooser's last choice, which holds until the next await. */
  readonly #out: Uint32Array;
  readonly #forwarder: Forwarder;
  readonly #ruledOut = new RuledOutLists();
  readonly #bodies: BodyParts;

  constructor(parts: RouteParts) {
    this.#parts = parts;
    const limitBytes = (): number => bodyMemoryBytes(parts.settings.limits.bodyBytes);
    this.#bodies = { clock: parts.clock, turns: new LoopTurns(), memory: new BodyMemory(limitBytes) };
    this.#chooser = new Chooser(parts);
    this.#out = this.#chooser.out;
    this.#forwarder = new Forwarder(parts, this.#chooser, {
      onOver: (exchange, outcome) => this.#end(exchange, outcome),
      onError: (exchange, error) => this.#fail(exchange, error),
    });
  }

  serve(request: FrontRequest, response: ServerResponse, requestId: string): void {
    try {
      const exchange = openExchange(this.#parts, this.#bodies.memory, request, response, requestId);
      if (exchange === null) return;
      readBody(exchange, this.#parts.settings.limits, this.#bodies, (read) =>
        this.#try(exchange, () => this.#onBody(exchange, read)),
      );
    } catch (error) {
      this.#tellFailure(response, requestId, error);
    }
  }

  #onBody(exchange: Exchange, read: BodyRead): void {
    if (read.kind === "gone") {
      this.#end(exchange, "cancelled");
      return;
    }
    if (read.kind === "refused") {
      this.#refuseUnread(exchange, read.error);
      return;
    }
    exchange.body = read.bytes;
    const { encoding, share } = exchange;
    if (!isCompressed(encoding)) {
      this.#onText(exchange, checkText(read.bytes));
      return;
    }
    inflateBody(read.bytes, encoding, this.#parts.settings.limits.bodyBytes, this.#bodies, share).then(
      (text) => this.#try(exchange, () => this.#onText(exchange, text)),
      (error: unknown) => this.#fail(exchange, error),
    );
  }

  /** Counts the arrival, whatever becomes of it; refuses what no engine can serve and what the plan sheds. */
  #onText(exchange: Exchange, text: Readable): void {
    if (text.kind === "refused") {
      this.#refuseUnread(exchange, text.error);
      return;
    }
    const { request } = exchange;
    if (request.socket.destroyed) {
      this.#end(exchange, "cancelled");
      return;
    }
    exchange.text = text.bytes;
    const { demand, random } = this.#parts;
    const routing = this.#parts.routing();
    routing.use();
    exchange.routing = routing;
    exchange.isRouted = true;
    const out = this.#out;
    const status = this.#chooser.choose(exchange, NONE);
    const className = out[OUT.requestClass] === NO_CLASS ? undefined : routing.classAt(out[OUT.requestClass]!);
    const requestClass = className === undefined ? undefined : routing.snapshot.classes[className];
    exchange.className = className;
    if (className !== undefined && requestClass !== undefined)
      demand.arrived(className, requestClass.work, isClientRetry(request));

    const error =
      status === ROUTE_STATUS.ok ? resolveAlias(exchange, out) : unroutable(exchange, status, out, random());
    noteRouting(exchange, out, this.#ruledOut);
    if (error !== null) {
      this.#refuse(exchange, error, "rejected");
      return;
    }
    this.#enter(exchange, className ?? OTHER);
  }

  /** Admitted at once or after a wait; or away. `out` holds the choice. */
  #enter(exchange: Exchange, requestClass: string): void {
    const { admission, sinceControlMs } = this.#parts;
    const out = this.#out;
    const facts = {
      cell: out[OUT.cell]!,
      first: out[OUT.first] === 1,
      keyHash2: out[OUT.keyHash2]!,
      sinceControlMs: sinceControlMs(),
    };
    const asked = admission.ask(requestClass, facts, exchange.deadlineAtMs);
    if (asked.kind !== "waiting") {
      this.#onAdmission(exchange, asked, requestClass);
      return;
    }
    this.#turnOf(exchange, asked, requestClass).then(
      (answer) => this.#try(exchange, () => this.#onTurn(exchange, answer, requestClass)),
      (error: unknown) => this.#fail(exchange, error),
    );
  }

  /** @param answer null = its client left while it waited */
  #onTurn(exchange: Exchange, answer: Admitted | null, requestClass: string): void {
    if (answer === null) {
      this.#end(exchange, "cancelled");
      return;
    }
    if (answer.kind === "shed") {
      this.#onAdmission(exchange, answer, requestClass);
      return;
    }
    exchange.admittedAs = requestClass;
    const out = this.#out;
    // While it waited other requests were routed, and engines changed.
    const status = this.#chooser.choose(exchange, NONE);
    noteRouting(exchange, out, this.#ruledOut);
    if (status !== ROUTE_STATUS.ok) {
      this.#refuse(exchange, unroutable(exchange, status, out, this.#parts.random()), "rejected");
      return;
    }
    this.#onAdmission(exchange, answer, requestClass);
  }

  #onAdmission(exchange: Exchange, answer: Admitted, requestClass: string): void {
    const { demand, metrics, random } = this.#parts;
    if (answer.kind === "shed") {
      demand.shed(requestClass);
      metrics.shed.inc(requestClass, answer.reason);
      exchange.decision.shed = answer.reason;
      this.#refuse(exchange, shedError(answer.reason, random()), "shed");
      return;
    }
    exchange.admittedAs = requestClass;
    this.#forwarder.forward(exchange);
  }

  /** What becomes of a request that waits; null when its client leaves first. */
  async #turnOf({ request }: Exchange, waiting: Waiting, requestClass: string): Promise<Admitted | null> {
    const { queueDepth } = this.#parts.metrics;
    queueDepth.inc({ class: requestClass });
    try {
      return await turnOrGone(request.socket, waiting);
    } finally {
      queueDepth.dec({ class: requestClass });
    }
  }

  /** The gateway answers itself. */
  #refuse(exchange: Exchange, error: ApiError, outcome: Outcome): void {
    exchange.decision.error = error.code;
    writeError(exchange.response, error, ownAnswer(exchange));
    this.#end(exchange, outcome);
  }

  /** A body that can't be served; the rest of it may still be coming. */
  #refuseUnread(exchange: Exchange, error: ApiError): void {
    const { request, response, manner } = exchange;
    exchange.decision.error = error.code;
    this.#end(exchange, "rejected");
    refuseUnread(request, response, error, manner, this.#parts.clock);
  }

  /** The request is over. */
  #end(exchange: Exchange, outcome: Outcome): void {
    const { metrics, clock } = this.#parts;
    const requestClass = exchange.className ?? OTHER;
    const wasRouted = exchange.isRouted;
    this.#letGo(exchange);
    countRequest(this.#parts, exchange.decision, requestClass, outcome);
    if (wasRouted) metrics.requestSeconds.add(requestClass, (clock.nowMs() - exchange.arrivedMs) / 1000);
  }

  /** Gives back what the request holds; once more does nothing. */
  #letGo(exchange: Exchange): void {
    const { admittedAs } = exchange;
    exchange.admittedAs = null;
    if (admittedAs !== null) this.#parts.admission.leave(admittedAs);
    if (exchange.isRouted) {
      exchange.isRouted = false;
      exchange.routing.done();
    }
    exchange.share.release();
  }

  #try(exchange: Exchange, task: () => void): void {
    try {
      task();
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #fail(exchange: Exchange, error: unknown): void {
    this.#letGo(exchange);
    this.#tellFailure(exchange.response, exchange.requestId, error);
  }

  /** An error that nobody foresaw. */
  #tellFailure(response: ServerResponse, requestId: string, error: unknown): void {
    const { onError, decisions } = this.#parts;
    onError(error, requestId);
    decisions.fail(requestId, INTERNAL.code);
    if (response.headersSent) response.destroy();
    else writeError(response, INTERNAL, { dialect: "openai", requestId });
  }
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Outcome } from "@guidevane/core";
import type { Admitted, Waiting } from "@guidevane/guard";
import { HEAD, type HeadFacts, NO_CLASS, OUT, OUT_WORDS, ROUTE_STATUS, type RouteStatus } from "@guidevane/selector";
import { accept } from "./accept.ts";
import { resolveAlias } from "./alias.ts";
import { type AnswerManner, type ApiError, writeError } from "./api-error.ts";
import { askForBody, type BodyParts, readable, readBody, refuseEncoding, refuseLength } from "./body.ts";
import { BodyMemory, type BodyShare, bodyMemoryBytes } from "./body-memory.ts";
import type { ClientKeys } from "./client-keys.ts";
import { corsHeaders, preflightAnswer } from "./cors.ts";
import { readDeadline } from "./deadline.ts";
import type { DecisionDraft } from "./decision-draft.ts";
import { noteRouting } from "./decision-notes.ts";
import type { Decisions } from "./decisions.ts";
import { type Exchange, isClientRetry, ownAnswer } from "./exchange.ts";
import { Forwarder, type ForwardParts } from "./forward.ts";
import { createHeadFacts, fillHead, readHead } from "./head-facts.ts";
import { LoopTurns } from "./loop-turns.ts";
import { OTHER } from "./metrics.ts";
import { modelsAnswer } from "./models.ts";
import { ignoreLateError, refuseUnread, shedError, unroutable } from "./refusals.ts";
import { requestIdOf } from "./request-id.ts";
import { responseKey } from "./response-memory.ts";
import type { Routing } from "./routing.ts";
import { RuledOutLists } from "./ruled-out-lists.ts";

/** What the request path works with. One per thread. */
export interface RouteParts extends ForwardParts {
  /** The snapshot in use now. */
  readonly routing: () => Routing;
  /** Whether a conversation's first request is placed by load: one gateway alone sees all of it. */
  readonly placement: () => boolean;
  /** What clients must bring; null = nothing. */
  readonly clientKeys: () => ClientKeys | null;
  readonly sinceControlMs: () => number;
  /** What is remembered of requests. */
  readonly decisions: Decisions;
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
      parts.decisions.fail(requestId, INTERNAL.code);
      if (response.headersSent) response.destroy();
      else writeError(response, INTERNAL, { dialect: "openai", requestId });
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
  readonly #forwarder: Forwarder;
  readonly #ruledOut = new RuledOutLists();
  readonly #bodies: BodyParts;

  constructor(parts: RouteParts) {
    this.#parts = parts;
    const limitBytes = (): number => bodyMemoryBytes(parts.settings.limits.bodyBytes);
    this.#bodies = { clock: parts.clock, turns: new LoopTurns(), memory: new BodyMemory(limitBytes) };
    this.#forwarder = new Forwarder(parts, this.#out, (exchange, tried) => this.#choose(exchange, tried));
  }

  async serve(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const share = this.#bodies.memory.share();
    try {
      await this.#read(request, response, requestId, share);
    } finally {
      share.release();
    }
  }

  /** Reads the head and the body; what can't be served ends here, unseen by any engine. */
  async #read(request: IncomingMessage, response: ServerResponse, requestId: string, share: BodyShare): Promise<void> {
    const { clock, settings } = this.#parts;
    const arrivedMs = clock.nowMs();
    response.on("error", ignoreLateError);
    const accepted = accept(request, settings.cors.origins.length > 0);
    const manner: AnswerManner = {
      dialect: accepted.dialect,
      requestId,
      headers: corsHeaders(request, settings.cors),
    };
    if (accepted.kind === "preflight") return preflightAnswer(request, response, settings.cors, accepted.allow);
    const decision = this.#parts.decisions.begin(requestId, (request.url ?? "").split("?", 1)[0]!);
    const refuse = (error: ApiError): void => {
      decision.error = error.code;
      this.#count(decision, undefined, "rejected");
      refuseUnread(request, response, error, manner, clock);
    };

    if (accepted.kind === "refused") return refuse(accepted.error);
    const query = accepted.kind === "inference" ? accepted.query : "";
    const client = this.#parts.clientKeys()?.clientOf(request.rawHeaders, query) ?? null;
    if (client !== null && "status" in client) return refuse(client);
    if (accepted.kind === "models") {
      const error = modelsAnswer(response, this.#parts.routing().snapshot, accepted, manner);
      if (error === null) return this.#parts.decisions.forget(decision);
      decision.error = error.code;
      return this.#count(decision, undefined, "rejected");
    }
    const encoding = request.headers["content-encoding"];
    const deadlineMs = readDeadline(request.headers);
    if (deadlineMs !== null && typeof deadlineMs !== "number") return refuse(deadlineMs);
    const unreadable = refuseEncoding(encoding) ?? refuseLength(request, settings.limits);
    if (unreadable !== null) return refuse(unreadable);
    askForBody(request, response);

    const body = await readBody(request, settings.limits, this.#bodies, share);
    if (body.kind === "gone") return this.#count(decision, undefined, "cancelled");
    if (body.kind === "refused") return refuse(body.error);
    const text = await readable(body.bytes, encoding, settings.limits.bodyBytes, this.#bodies, share);
    if (text.kind === "refused") return refuse(text.error);
    if (request.socket.destroyed) return this.#count(decision, undefined, "cancelled");

    const routing = this.#parts.routing();
    routing.use();
    try {
      await this.#classify({
        request,
        response,
        requestId,
        arrivedMs,
        accepted,
        manner,
        client,
        head: readHead(request.rawHeaders, accepted.pathId, settings, client?.tenant),
        routing,
        body: body.bytes,
        text: text.bytes,
        share,
        withheld: client?.keyHeaders ?? [],
        deadlineAtMs: deadlineMs === null ? null : arrivedMs + deadlineMs,
        className: undefined,
        attempts: [],
        decision,
      });
    } finally {
      routing.done();
    }
  }

  /** Counts the arrival, whatever becomes of it; refuses what no engine can serve and what the plan sheds. */
  async #classify(exchange: Exchange): Promise<void> {
    const { demand, random } = this.#parts;
    const { request, routing } = exchange;
    const out = this.#out;
    const status = this.#choose(exchange, []);
    const className = out[OUT.requestClass] === NO_CLASS ? undefined : routing.classAt(out[OUT.requestClass]!);
    const requestClass = className === undefined ? undefined : routing.snapshot.classes[className];
    exchange.className = className;
    if (className !== undefined && requestClass !== undefined)
      demand.arrived(className, requestClass.work, isClientRetry(request));

    const error =
      status === ROUTE_STATUS.ok ? resolveAlias(exchange, out) : unroutable(exchange, status, out, random());
    noteRouting(exchange, out, this.#ruledOut);
    if (error !== null) return this.#refuse(exchange, error, "rejected");
    return this.#enter(exchange, className ?? OTHER);
  }

  /** Through the door to the engines, at once or after a wait, and on; or away. `out` holds the choice. */
  async #enter(exchange: Exchange, requestClass: string): Promise<void> {
    const { admission, demand, random, metrics, sinceControlMs } = this.#parts;
    const out = this.#out;
    const facts = {
      cell: out[OUT.cell]!,
      first: out[OUT.first] === 1,
      keyHash2: out[OUT.keyHash2]!,
      sinceControlMs: sinceControlMs(),
    };
    const asked = admission.ask(requestClass, facts, exchange.deadlineAtMs);
    const answer = asked.kind === "waiting" ? await this.#turnOf(exchange, asked, requestClass) : asked;
    if (answer === null) return this.#end(exchange, "cancelled");
    if (answer.kind === "shed") {
      demand.shed(requestClass);
      metrics.shed.inc(requestClass, answer.reason);
      return this.#refuse(exchange, shedError(answer.reason, random()), "shed");
    }
    try {
      // While it waited other requests were routed, and engines changed.
      const status = asked.kind === "waiting" ? this.#choose(exchange, []) : ROUTE_STATUS.ok;
      if (asked.kind === "waiting") noteRouting(exchange, out, this.#ruledOut);
      if (status !== ROUTE_STATUS.ok)
        return this.#refuse(exchange, unroutable(exchange, status, out, random()), "rejected");
      return this.#end(exchange, await this.#forwarder.forward(exchange));
    } finally {
      admission.leave(requestClass);
    }
  }

  /** What becomes of a request that waits; null when its client leaves first. */
  async #turnOf({ request }: Exchange, waiting: Waiting, requestClass: string): Promise<Admitted | null> {
    const { queueDepth } = this.#parts.metrics;
    const { promise: gone, resolve } = Promise.withResolvers<null>();
    const leave = (): void => {
      waiting.leave();
      resolve(null);
    };
    queueDepth.inc({ class: requestClass });
    request.socket.on("close", leave);
    try {
      return await Promise.race([waiting.turn, gone]);
    } finally {
      request.socket.off("close", leave);
      queueDepth.dec({ class: requestClass });
    }
  }

  /** One call of the selector; the choice is in `out` until the next await. */
  #choose(exchange: Exchange, tried: readonly number[]): RouteStatus {
    const { head, routing, text } = exchange;
    const numbers = routing.numbersOf(head);
    if (numbers === null) {
      this.#out[OUT.requestClass] = NO_CLASS;
      return ROUTE_STATUS.noEligibleEngine;
    }
    const { clock, placement } = this.#parts;
    fillHead(this.#facts, head, numbers, { wallMs: clock.wallMs(), placement: placement(), tried });
    const status = this.#route(routing, text);
    const slot = this.#rememberedSlot(exchange, numbers.tenant);
    if (slot === null) return status;
    // Only the engine that gave the answer before this one has it.
    this.#facts.words[HEAD.followed] = 1 + slot;
    return this.#route(routing, text);
  }

  #route({ router }: Routing, text: Buffer): RouteStatus {
    const fromMs = performance.now();
    const status = router.route(this.#facts, text, this.#out);
    this.#parts.metrics.routeSeconds.add("", (performance.now() - fromMs) / 1000);
    return status;
  }

  /** Where the answer that the body names (`previous_response_id`) came from; null where it names none or nobody knows. */
  #rememberedSlot({ routing, text }: Exchange, tenant: number): number | null {
    const [start, end] = [this.#out[OUT.previousStart]!, this.#out[OUT.previousEnd]!];
    if (end <= start) return null;
    const { responses, clock } = this.#parts;
    const engine = responses.find(responseKey(text, start, end, tenant), clock.nowMs() / 1000);
    return engine === 0 ? null : routing.slotOfHash(engine);
  }

  /** The gateway answers itself. */
  #refuse(exchange: Exchange, error: ApiError, outcome: Outcome): void {
    exchange.decision.error = error.code;
    writeError(exchange.response, error, ownAnswer(exchange));
    this.#end(exchange, outcome);
  }

  #end(exchange: Exchange, outcome: Outcome): void {
    this.#count(exchange.decision, exchange, outcome);
  }

  /** The request is over. Without an exchange it ended before it was routed. */
  #count(decision: DecisionDraft, exchange: Exchange | undefined, outcome: Outcome): void {
    const { metrics, clock, decisions } = this.#parts;
    decision.outcome = outcome;
    decisions.end(decision);
    const requestClass = exchange?.className ?? OTHER;
    metrics.requests.inc(requestClass, outcome);
    if (exchange === undefined) return;
    metrics.requestSeconds.add(requestClass, (clock.nowMs() - exchange.arrivedMs) / 1000);
  }
}

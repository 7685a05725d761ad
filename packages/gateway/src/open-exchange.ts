import type { ServerResponse } from "node:http";
import type { Outcome } from "@guidevane/core";
import { accept } from "./accept.ts";
import type { AnswerManner, ApiError } from "./api-error.ts";
import { refuseEncoding, refuseLength } from "./body.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { ClientKeys } from "./client-keys.ts";
import { corsHeaders, preflightAnswer } from "./cors.ts";
import { readDeadline } from "./deadline.ts";
import type { DecisionDraft } from "./decision-draft.ts";
import type { Decisions } from "./decisions.ts";
import type { Exchange } from "./exchange.ts";
import { askForBody } from "./expect-continue.ts";
import type { ForwardParts } from "./forward.ts";
import type { FrontRequest } from "./front-request.ts";
import { readHead } from "./head-facts.ts";
import { OTHER } from "./metrics.ts";
import { modelsAnswer } from "./models.ts";
import { ignoreLateError, refuseUnread } from "./refusals.ts";
import type { Routing } from "./routing.ts";

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

/** Null where the head says enough for an answer: what can't be served ends here, unseen by any engine. */
export function openExchange(
  parts: RouteParts,
  memory: BodyMemory,
  request: FrontRequest,
  response: ServerResponse,
  requestId: string,
): Exchange | null {
  const { clock, settings } = parts;
  const arrivedMs = clock.nowMs();
  response.on("error", ignoreLateError);
  const accepted = accept(request, settings.cors.origins.length > 0);
  const manner: AnswerManner = {
    dialect: accepted.dialect,
    requestId,
    headers: corsHeaders(request, settings.cors),
  };
  if (accepted.kind === "preflight") {
    preflightAnswer(request, response, settings.cors, accepted.allow);
    return null;
  }
  const decision = parts.decisions.begin(requestId, pathOf(request.url ?? ""));
  const refuse = (error: ApiError): null => {
    decision.error = error.code;
    countRequest(parts, decision, OTHER, "rejected");
    refuseUnread(request, response, error, manner, clock);
    return null;
  };

  if (accepted.kind === "refused") return refuse(accepted.error);
  const query = accepted.kind === "inference" ? accepted.query : "";
  const client = parts.clientKeys()?.clientOf(request.rawHeaders, query) ?? null;
  if (client !== null && "status" in client) return refuse(client);
  if (accepted.kind === "models") {
    const error = modelsAnswer(response, parts.routing().snapshot, accepted, manner);
    if (error === null) parts.decisions.forget(decision);
    else {
      decision.error = error.code;
      countRequest(parts, decision, OTHER, "rejected");
    }
    return null;
  }
  const encoding = request.headers["content-encoding"];
  const deadlineMs = readDeadline(request.headers);
  if (deadlineMs !== null && typeof deadlineMs !== "number") return refuse(deadlineMs);
  const unreadable = refuseEncoding(encoding) ?? refuseLength(request, settings.limits);
  if (unreadable !== null) return refuse(unreadable);
  askForBody(request, response);
  return {
    request,
    response,
    requestId,
    arrivedMs,
    accepted,
    manner,
    client,
    head: readHead(request.rawHeaders, accepted.pathId, settings, client?.tenant),
    encoding,
    routing: parts.routing(),
    isRouted: false,
    admittedAs: null,
    share: memory.share(),
    withheld: client?.keyHeaders ?? NONE,
    body: EMPTY,
    text: EMPTY,
    deadlineAtMs: deadlineMs === null ? null : arrivedMs + deadlineMs,
    className: undefined,
    attempts: [],
    decision,
  };
}

/** A request is over. */
export function countRequest(
  { decisions, metrics }: Pick<RouteParts, "decisions" | "metrics">,
  decision: DecisionDraft,
  requestClass: string,
  outcome: Outcome,
): void {
  decision.outcome = outcome;
  decisions.end(decision);
  metrics.requests.inc(requestClass, outcome);
}

function pathOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? target : target.slice(0, mark);
}

const EMPTY: Buffer = Buffer.alloc(0);
const NONE: readonly never[] = [];

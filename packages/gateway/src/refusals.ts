import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@guidevane/core";
import { retryAfterS, type ShedReason } from "@guidevane/guard";
import { OUT, ROUTE_STATUS, type RouteStatus } from "@guidevane/selector";
import { type AnswerManner, type ApiError, sendError } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import { unknownModel } from "./models.ts";

export const UNREACHABLE: ApiError = {
  status: 502,
  code: "engine_unreachable",
  message: "no engine could be reached",
};

/** A request that could be served is refused to protect the others. @param draw in [0, 1): spreads the clients' return */
export function shedError(reason: ShedReason, draw: number): ApiError {
  return {
    ...shedWords(reason),
    headers: { "retry-after": String(retryAfterS(draw)), "x-guidevane-shed-reason": reason },
  };
}

function shedWords(reason: ShedReason): Pick<ApiError, "status" | "code" | "message"> {
  switch (reason) {
    case "planned":
      return { status: 503, code: "shed", message: "demand is above what the fleet can serve; try again later" };
    case "gateway-limit":
      return { status: 503, code: "gateway_overloaded", message: "the gateway holds as many requests as it may" };
    default:
      return { status: 429, code: "busy", message: `the engines are busy (${reason}); try again later` };
  }
}

/** Why the selector gave no engine, for the client. `out` must still be of this request. */
export function unroutable(exchange: Exchange, status: RouteStatus, out: Uint32Array, draw: number): ApiError {
  switch (status) {
    case ROUTE_STATUS.notJson:
      return { status: 400, code: "invalid_json", message: "the body is not a JSON object" };
    case ROUTE_STATUS.tooUnusual:
      return { status: 400, code: "invalid_json", message: "the body's JSON is too unusual for its size" };
    case ROUTE_STATUS.modelRequired:
      return { status: 400, code: "model_required", message: "name a model, as a string", param: "model" };
    case ROUTE_STATUS.modelNotFound: {
      const model = modelNamed(exchange.text, out);
      return model === null
        ? { status: 404, code: "model_not_found", message: "no engine has this model", param: "model" }
        : unknownModel(model);
    }
    default: {
      const { className } = exchange.head;
      const named = className === null ? "" : ` of class ${JSON.stringify(className)}`;
      const why = ruledOut(exchange, out);
      return {
        status: 503,
        code: "no_eligible_engine",
        message: `no engine can serve this request${named}${why === "" ? "" : ` (${why})`}`,
        headers: { "retry-after": String(retryAfterS(draw)) },
      };
    }
  }
}

function ruledOut({ className, routing, head }: Exchange, out: Uint32Array): string {
  if (className === undefined) return "";
  return routing
    .ruledOut(className, {
      needs: out[OUT.needs]!,
      contextTokens: out[OUT.contextTokens]!,
      residency: head.residency,
      tried: new Set(),
    })
    .map(({ engine, message }) => `${engine}: ${message}`)
    .join("; ");
}

/** More than any name's that is shown whole. */
const NAME_BYTES = 400;

/** The model's name as the body has it; null where the scan did not find its place. */
function modelNamed(text: Buffer, out: Uint32Array): string | null {
  const [start, end] = [out[OUT.modelStart]!, out[OUT.modelEnd]!];
  if (!(end > start && end <= text.length)) return null;
  return text.toString("utf8", start, Math.min(end, start + NAME_BYTES));
}

/** How long an unwanted rest of a request is read before its connection is closed. */
const LINGER_MS = 1000;

/**
 * Answers a request whose rest is not wanted. Closing at once would reset the connection under a client that is still
 * sending, and the reset can overtake the answer; so the rest is read and thrown away for a moment.
 */
export function refuseUnread(
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
  manner: AnswerManner,
  clock: Clock,
): void {
  sendError(response, error, manner);
  if (request.complete) {
    response.end();
    return;
  }
  const end = (): void => {
    stop();
    request.off("end", end).off("close", end);
    response.end();
  };
  const stop = clock.after(LINGER_MS, end);
  request.on("error", ignoreLateError).on("end", end).on("close", end);
  request.resume();
}

/** The client has left; what became of its request was counted when its connection closed. */
export function ignoreLateError(): void {}

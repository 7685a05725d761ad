import type { ServerResponse } from "node:http";

/** How an endpoint's clients want to be told of an error. `responses` differs from `openai` inside a stream only. */
export type Dialect = "openai" | "responses" | "anthropic";

/** The gateway's own answer to a request that it doesn't pass on. Codes never change their meaning. */
export interface ApiError {
  readonly status: number;
  readonly code: ApiErrorCode;
  readonly message: string;
  /** The part of the request that was wrong; null = none in particular. */
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The rest of the request was not read, so the connection can't serve another one. */
  readonly close?: boolean;
}

/** `docs/requests.md` says what each means. */
export const API_ERROR_CODES = [
  "invalid_request_line",
  "invalid_header",
  "not_found",
  "method_not_allowed",
  "upgrade_not_supported",
  "expectation_failed",
  "unsupported_encoding",
  "invalid_encoding",
  "headers_too_large",
  "body_too_large",
  "request_timeout",
  "invalid_api_key",
  "invalid_json",
  "model_required",
  "model_not_found",
  "no_eligible_engine",
  "engine_unreachable",
  "engine_timeout",
  "gateway_overloaded",
  "busy",
  "shed",
  "internal_error",
] as const;

export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

type ErrorFacts = Pick<ApiError, "status" | "code" | "message" | "param">;

/** `error.type` as OpenAI's clients know it. */
function openaiType(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** `error.type` as Anthropic's clients know it. */
function anthropicType(status: number): string {
  return ANTHROPIC_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
}

/** The JSON of an error, in the words of the endpoint. @param requestId null = the request was never read so far */
function errorBody(dialect: Dialect, error: ErrorFacts, requestId: string | null): string {
  const { status, code, message, param } = error;
  if (dialect === "anthropic")
    return JSON.stringify({ type: "error", error: { type: anthropicType(status), message }, request_id: requestId });
  return JSON.stringify({ error: { message, type: openaiType(status), param: param ?? null, code } });
}

/** One event of a stream that has begun and can't go on. The stream ends after it, without `[DONE]`. */
export function streamError(dialect: Dialect, error: ErrorFacts, requestId: string): string {
  if (dialect === "openai") return `data: ${errorBody(dialect, error, requestId)}\n\n`;
  if (dialect === "anthropic") return `event: error\ndata: ${errorBody(dialect, error, requestId)}\n\n`;
  const { status, code, message, param = null } = error;
  // Of this API's clients some read the event's own fields, and some throw only where there is an `error` in it.
  const body = {
    ...{ type: "error", sequence_number: 0, code, message, param },
    error: { type: openaiType(status), code, message, param },
  };
  return `event: error\ndata: ${JSON.stringify(body)}\n\n`;
}

/** How the gateway's own answers are said to one client. */
export interface AnswerManner {
  readonly dialect: Dialect;
  readonly requestId: string;
  /** On top of those that an answer has anyway; names and values in turn. */
  readonly headers?: readonly string[];
}

/** Answers with `error`. Nothing may have been sent yet. */
export function writeError(response: ServerResponse, error: ApiError, manner: AnswerManner): void {
  sendError(response, error, manner);
  response.end();
}

/** The whole answer without ending it: a client has all of it, and its connection is not closed yet. */
export function sendError(response: ServerResponse, error: ApiError, manner: AnswerManner): void {
  const { dialect, requestId, headers = [] } = manner;
  const body = Buffer.from(errorBody(dialect, error, requestId));
  if (error.close === true) response.shouldKeepAlive = false;
  response.writeHead(error.status, [
    ...["content-type", "application/json", "content-length", String(body.length)],
    ...(error.close === true ? ["connection", "close"] : []),
    ...["x-request-id", requestId],
    ...headers,
    ...Object.entries(error.headers ?? {}).flat(),
  ]);
  response.write(body);
}

/** An answer as raw text, for a connection whose request node could not read. Closes. */
export function rawError(error: ApiError): string {
  const body = errorBody("openai", error, null);
  const extra = Object.entries(error.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  return (
    `HTTP/1.1 ${error.status} ${REASONS[error.status] ?? "Error"}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n` +
    `${extra.join("")}\r\n${body}`
  );
}

const REASONS: Readonly<Record<number, string>> = {
  400: "Bad Request",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  431: "Request Header Fields Too Large",
};

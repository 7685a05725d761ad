import type { ServerResponse } from "node:http";

/** The gateway's own answer to a request that it doesn't pass on, in OpenAI's shape. Codes never change their meaning. */
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

export type ApiErrorCode =
  | "invalid_request_line"
  | "invalid_header"
  | "not_found"
  | "method_not_allowed"
  | "upgrade_not_supported"
  | "expectation_failed"
  | "unsupported_encoding"
  | "invalid_encoding"
  | "headers_too_large"
  | "body_too_large"
  | "request_timeout"
  | "invalid_json"
  | "model_required"
  | "model_not_found"
  | "unknown_class"
  | "no_eligible_engine"
  | "engine_unreachable"
  | "engine_timeout"
  | "shed"
  | "stopping"
  | "internal_error";

/** `error.type` of the body, as OpenAI's clients know them. */
function typeOf(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

export function errorBody(error: Pick<ApiError, "status" | "code" | "message" | "param">): string {
  const { status, code, message, param } = error;
  return JSON.stringify({ error: { message, type: typeOf(status), param: param ?? null, code } });
}

/** One event of a stream that has begun and can't go on. The stream ends after it, without `[DONE]`. */
export function errorEvent(error: Pick<ApiError, "status" | "code" | "message" | "param">): string {
  return `data: ${errorBody(error)}\n\n`;
}

/** Answers with `error`; `headers` come on top of those that the error itself brings. Nothing may have been sent yet. */
export function writeError(
  response: ServerResponse,
  error: ApiError,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendError(response, error, headers);
  response.end();
}

/** The whole answer without ending it: a client has all of it, and its connection is not closed yet. */
export function sendError(
  response: ServerResponse,
  error: ApiError,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(errorBody(error));
  if (error.close === true) response.shouldKeepAlive = false;
  response.writeHead(error.status, {
    "content-type": "application/json",
    "content-length": String(body.length),
    ...(error.close === true ? { connection: "close" } : {}),
    ...headers,
    ...error.headers,
  });
  response.write(body);
}

/** The same answer as raw text, for a connection whose request node could not read. Closes. */
export function rawError(error: ApiError): string {
  const body = errorBody(error);
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

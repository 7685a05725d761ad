import type { IncomingMessage } from "node:http";
import { PATH } from "@guidevane/selector";
import type { ApiError } from "./api-error.ts";

/** What a request asks for, by its head alone. */
export type Accepted =
  | { readonly kind: "models"; readonly head: boolean }
  | {
      readonly kind: "inference";
      /** A `PATH` number of the selector. */
      readonly pathId: number;
      readonly path: string;
      /** With its `?`; empty where there is none. */
      readonly query: string;
    };

const INFERENCE: ReadonlyMap<string, number> = new Map([
  ["/v1/chat/completions", PATH.chat],
  ["/v1/completions", PATH.completions],
  ["/v1/embeddings", PATH.embeddings],
]);

/**
 * Reads a request's head: path, method and what can't be served. Paths are compared as they were sent, so a path written
 * in another way (`%2e`, `//`, `..`, a backslash) is simply not there.
 */
export function accept(request: IncomingMessage): Accepted | ApiError {
  const target = request.url ?? "";
  const method = request.method ?? "";
  if (request.httpVersionMajor !== 1)
    return {
      status: 505,
      code: "invalid_request_line",
      message: `HTTP/${request.httpVersion} is not spoken here`,
      close: true,
    };
  // Two servers that choose a different one of two hosts see two different requests (RFC 9112 §3.2).
  const hosts = countOf(request.rawHeaders, "host");
  if (hosts > 1 || (hosts === 0 && request.httpVersionMinor > 0))
    return {
      status: 400,
      code: "invalid_header",
      message: hosts === 0 ? "there is no Host header" : `there are ${hosts} Host headers`,
      param: "host",
      close: true,
    };
  const { upgrade } = request.headers;
  // A client may offer HTTP/2 in clear text and go on without it; any other upgrade is a wish that can't be met.
  if (upgrade !== undefined && upgrade.toLowerCase() !== "h2c")
    return {
      status: 400,
      code: "upgrade_not_supported",
      message: `upgrading to ${shown(upgrade)} is not supported`,
      close: true,
    };
  const coding = request.headers["transfer-encoding"];
  // What is coded otherwise would reach the engine without the header that says so.
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked")
    return {
      status: 400,
      code: "invalid_header",
      message: `transfer-encoding ${shown(coding)} is not read`,
      param: "transfer-encoding",
      close: true,
    };
  if (!target.startsWith("/"))
    return { status: 400, code: "invalid_request_line", message: "the request target must be a path", close: true };
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? "" : target.slice(mark);
  if (path === "/v1/models") {
    if (method === "GET" || method === "HEAD") return { kind: "models", head: method === "HEAD" };
    return notAllowed(method, path, "GET, HEAD");
  }
  const pathId = INFERENCE.get(path);
  if (pathId === undefined)
    return { status: 404, code: "not_found", message: `there is no ${shown(path)} here`, param: "path", close: true };
  if (method !== "POST") return notAllowed(method, path, "POST");
  if (!wellEscaped(query))
    return { status: 400, code: "invalid_request_line", message: "the query has a broken % escape", close: true };
  return { kind: "inference", pathId, path, query };
}

export function isApiError(value: Accepted | ApiError): value is ApiError {
  return "status" in value;
}

function notAllowed(method: string, path: string, allow: string): ApiError {
  return {
    status: 405,
    code: "method_not_allowed",
    message: `${method} is not allowed on ${path}; allowed: ${allow}`,
    headers: { allow },
    close: true,
  };
}

function wellEscaped(query: string): boolean {
  return !/%(?![0-9A-Fa-f]{2})/.test(query) && !query.includes("\\");
}

function countOf(raw: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < raw.length; i += 2)
    if (raw[i]!.length === name.length && raw[i]!.toLowerCase() === name) count += 1;
  return count;
}

const SHOWN_CHARACTERS = 80;

function shown(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

import type { IncomingMessage } from "node:http";
import { PATH } from "@guidevane/selector";
import type { ApiError, Dialect } from "./api-error.ts";

/** What a request asks for, by its head alone. */
export type Accepted =
  | {
      readonly kind: "models";
      readonly dialect: Dialect;
      readonly head: boolean;
      /** The one that is asked for; null = all of them. */
      readonly model: string | null;
    }
  /** A browser asks what it may send to this path. */
  | { readonly kind: "preflight"; readonly dialect: Dialect; readonly allow: string }
  | {
      readonly kind: "inference";
      readonly dialect: Dialect;
      /** A `PATH` number of the selector. */
      readonly pathId: number;
      readonly path: string;
      /** With its `?`; empty where there is none. */
      readonly query: string;
    }
  | { readonly kind: "refused"; readonly dialect: Dialect; readonly error: ApiError };

interface Endpoint {
  readonly pathId: number;
  readonly dialect: Dialect;
}

const INFERENCE: ReadonlyMap<string, Endpoint> = new Map([
  ["/v1/chat/completions", { pathId: PATH.chat, dialect: "openai" }],
  ["/v1/completions", { pathId: PATH.completions, dialect: "openai" }],
  ["/v1/responses", { pathId: PATH.responses, dialect: "responses" }],
  ["/v1/messages", { pathId: PATH.messages, dialect: "anthropic" }],
  ["/v1/messages/count_tokens", { pathId: PATH.countTokens, dialect: "anthropic" }],
  ["/v1/embeddings", { pathId: PATH.embeddings, dialect: "openai" }],
  ["/v1/rerank", { pathId: PATH.rerank, dialect: "openai" }],
  ["/v1/score", { pathId: PATH.score, dialect: "openai" }],
  ["/tokenize", { pathId: PATH.tokenize, dialect: "openai" }],
  ["/detokenize", { pathId: PATH.detokenize, dialect: "openai" }],
]);

const MODELS = "/v1/models";

/**
 * Reads a request's head: path, method and what can't be served. Paths are compared as they were sent, so a path written
 * in another way (`%2e`, `//`, `..`, a backslash) is simply not there.
 *
 * @param cors whether browsers of other origins may ask
 */
export function accept(request: IncomingMessage, cors: boolean): Accepted {
  const target = request.url ?? "";
  const method = request.method ?? "";
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const dialect = dialectOf(path, request);
  const bad = badHead(request) ?? badTarget(target);
  if (bad !== null) return { kind: "refused", dialect, error: bad };

  const endpoint = INFERENCE.get(path);
  if (endpoint !== undefined && method === "POST") {
    const query = mark < 0 ? "" : target.slice(mark);
    return { kind: "inference", dialect, pathId: endpoint.pathId, path, query };
  }
  const isModels = path === MODELS || path.startsWith(`${MODELS}/`);
  if (endpoint === undefined && !isModels) return refused(dialect, notFound(path));
  const allow = `${isModels ? "GET, HEAD" : "POST"}${cors ? ", OPTIONS" : ""}`;
  if (method === "OPTIONS" && cors) return { kind: "preflight", dialect, allow };
  if (endpoint !== undefined || !allow.split(", ").includes(method))
    return refused(dialect, notAllowed(method, path, allow));
  const model = path === MODELS ? null : decoded(path.slice(MODELS.length + 1));
  if (model === undefined) return refused(dialect, badTargetError("the path has a broken % escape"));
  return { kind: "models", dialect, head: method === "HEAD", model };
}

function refused(dialect: Dialect, error: ApiError): Accepted {
  return { kind: "refused", dialect, error };
}

/** Of the list of models there are two shapes; Anthropic's clients say by a header that they are theirs. */
function dialectOf(path: string, request: IncomingMessage): Dialect {
  const found = INFERENCE.get(path)?.dialect;
  if (found !== undefined) return found;
  const anthropic = path.startsWith("/v1/messages") || request.headers["anthropic-version"] !== undefined;
  return anthropic ? "anthropic" : "openai";
}

/** What of a head two servers might read in two ways, or can't be met; null = nothing. */
function badHead(request: IncomingMessage): ApiError | null {
  if (request.httpVersionMajor !== 1)
    return { ...badTargetError(`HTTP/${request.httpVersion} is not spoken here`), status: 505 };
  // Two servers that choose a different one of two hosts see two different requests (RFC 9112 §3.2).
  const hosts = countOf(request.rawHeaders, "host");
  if (hosts > 1 || (hosts === 0 && request.httpVersionMinor > 0))
    return badHeader("host", hosts === 0 ? "there is no Host header" : `there are ${hosts} Host headers`);
  const { host = "", upgrade, expect } = request.headers;
  if (!HOST.test(host)) return badHeader("host", `${shown(host)} is no host`);
  // A client may offer HTTP/2 in clear text and go on without it; any other upgrade is a wish that can't be met.
  if (upgrade !== undefined && upgrade.toLowerCase() !== "h2c")
    return {
      status: 400,
      code: "upgrade_not_supported",
      message: `upgrading to ${shown(upgrade)} is not supported`,
      close: true,
    };
  const coding = request.headers["transfer-encoding"];
  // What is coded otherwise would reach the engine without the header that says so. HTTP/1.0 has no chunks (RFC 9112 §6.1).
  if (coding !== undefined && (coding.trim().toLowerCase() !== "chunked" || request.httpVersionMinor === 0))
    return badHeader("transfer-encoding", `transfer-encoding ${shown(coding)} is not read`);
  if (expect !== undefined && request.httpVersionMinor > 0 && expect.toLowerCase() !== "100-continue")
    return {
      status: 417,
      code: "expectation_failed",
      message: `only Expect: 100-continue is understood, not ${shown(expect)}`,
      param: "expect",
      close: true,
    };
  return null;
}

/** RFC 3986's reg-name, an IPv6 address (perhaps with a zone) in brackets, and a port. */
const HOST = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\])(?::\d*)?$/;

function badTarget(target: string): ApiError | null {
  if (!target.startsWith("/")) return badTargetError("the request target must be a path");
  if (/[\\#]/.test(target)) return badTargetError("the request target has a character that is none of a path's");
  const mark = target.indexOf("?");
  if (mark >= 0 && BROKEN_ESCAPE.test(target.slice(mark))) return badTargetError("the query has a broken % escape");
  return null;
}

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

function badTargetError(message: string): ApiError {
  return { status: 400, code: "invalid_request_line", message, close: true };
}

function badHeader(name: string, message: string): ApiError {
  return { status: 400, code: "invalid_header", message, param: name, close: true };
}

function notFound(path: string): ApiError {
  return { status: 404, code: "not_found", message: `there is no ${shown(path)} here`, param: "path", close: true };
}

function notAllowed(method: string, path: string, allow: string): ApiError {
  return {
    status: 405,
    code: "method_not_allowed",
    message: `${method} is not allowed on ${shown(path)}; allowed: ${allow}`,
    headers: { allow },
    close: true,
  };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
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

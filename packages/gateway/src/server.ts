import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Fleet } from "@guidevane/core";
import { type ApiError, rawError } from "./api-error.ts";

/** Idle client connections are kept longer than most balancers before us keep theirs. */
const KEEP_ALIVE_MS = 75_000;

/** How long a connection that is given up may still take to send what was written to it. */
const FLUSH_MS = 500;

/** How often node looks for connections whose head is too slow. */
const SLOW_HEAD_CHECK_MS = 1000;

const UNFINISHED: unique symbol = Symbol("unfinished");
const CLOSING: unique symbol = Symbol("closing");

/** A client's connection, with what is known of it. */
interface FrontSocket extends Socket {
  /** Answers that have not gone out, in order. */
  [UNFINISHED]?: ServerResponse[];
  /** An answer that began says that it closes the connection. */
  [CLOSING]?: boolean;
}

/**
 * The HTTP server in front: node's parser with its limits set, and an answer in the API's shape for what the parser
 * itself refuses. `onRefused` is told of those that were no request yet, `onFinished` of each answer that went out.
 */
export function createFront(
  limits: Fleet["gateway"]["limits"],
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  onRefused: () => void,
  onFinished: () => void,
): Server {
  const server = createServer({
    maxHeaderSize: limits.headBytes,
    headersTimeout: limits.headMs,
    // The body has a timer of its own.
    requestTimeout: 0,
    // `accept` looks for it, and answers in the API's shape.
    requireHostHeader: false,
    connectionsCheckingInterval: SLOW_HEAD_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  });
  // Each request in a pipeline listens for its client's leaving.
  server.on("connection", (socket) => socket.setMaxListeners(0));
  const onFinish = function (this: ServerResponse): void {
    const socket = this.req.socket as FrontSocket;
    const answers = socket[UNFINISHED]!;
    if (answers.length === 1) answers.pop();
    else answers.splice(answers.indexOf(this), 1);
    if (!this.shouldKeepAlive) socket[CLOSING] = true;
    onFinished();
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const socket = request.socket as FrontSocket;
    // An answer before it in the pipeline closes the connection, so nobody would hear of this one.
    if (socket[CLOSING] === true) {
      request.resume();
      return;
    }
    socket[UNFINISHED] ??= [];
    socket[UNFINISHED].push(response);
    response.on("finish", onFinish);
    onRequest(request, response);
    if (response.headersSent && !response.shouldKeepAlive) socket[CLOSING] = true;
  };
  // The bytes are limited; node would drop headers beyond a count without a word.
  server.maxHeadersCount = 0;
  server.on("request", serve);
  server.on("checkContinue", serve);
  // `accept` refuses what is expected beyond 100-continue, in its turn among a pipeline's answers.
  server.on("checkExpectation", serve);
  /** Answers what never becomes a request of node's, and closes. */
  const refuseRaw = (socket: Duplex, error: ApiError): void => {
    // Into an answer that has begun nothing else can be written, nor in the place of one that is still to come: who waits
    // for that one would take this refusal for it.
    const waiting = (socket as Partial<FrontSocket>)[UNFINISHED] ?? [];
    if (waiting.some(({ headersSent, req }) => headersSent || req.complete)) {
      // What was written goes out: it may be the refusal of the very request that the parser stumbled over.
      socket.end(() => socket.destroy());
      setTimeout(() => socket.destroy(), FLUSH_MS).unref();
      return;
    }
    // Who reads the body of a request that breaks off there tells of it.
    if (waiting.length === 0) onRefused();
    socket.end(rawError(error), () => socket.destroy());
  };
  server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
    // From here on node leaves the socket to us, its errors too; unheard they would end the process.
    socket.on("error", () => socket.destroy());
    refuseRaw(socket, CONNECT);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else refuseRaw(socket, parserError(error, limits));
  });
  return server;
}

const CONNECT: ApiError = {
  status: 405,
  code: "method_not_allowed",
  message: "CONNECT is not allowed",
  headers: { allow: "GET, HEAD, POST" },
};

function parserError(error: NodeJS.ErrnoException, limits: Fleet["gateway"]["limits"]): ApiError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: 431,
        code: "headers_too_large",
        message: `the request's head is over the limit of ${limits.headBytes} bytes`,
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return {
        status: 408,
        code: "request_timeout",
        message: `the request's head was not complete after ${limits.headMs} ms`,
      };
    default:
      return { status: 400, code: "invalid_request_line", message: "the request is not well-formed HTTP/1.1" };
  }
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Fleet } from "@guidevane/core";
import { type ApiError, rawError } from "./api-error.ts";
import { FrontRequest } from "./front-request.ts";

export type FrontServer = Server<typeof FrontRequest, typeof ServerResponse>;

/** How long a connection that is given up may still take to send what was written to it. */
const FLUSH_MS = 500;

/** How long a client may still send on a connection whose last answer went out. */
const LINGER_MS = 1000;

/** How often node looks for connections whose head is too slow. */
const SLOW_HEAD_CHECK_MS = 1000;

const UNFINISHED: unique symbol = Symbol("unfinished");
const CLOSING: unique symbol = Symbol("closing");
const LAST_ANSWER: unique symbol = Symbol("last answer");

/** A client's connection, with what is known of it. */
interface FrontSocket extends Socket {
  /** Answers that have not gone out, in order. */
  [UNFINISHED]?: ServerResponse[];
  /** An answer that began says that it closes the connection. */
  [CLOSING]?: boolean;
  /** Counts answers of the server: a connection whose last one has a lower number is idle for longer. */
  [LAST_ANSWER]?: number;
}

/** What a front bounds. */
export interface FrontLimits extends Pick<Fleet["gateway"]["limits"], "headBytes" | "headMs"> {
  /** At a time, idle ones among them. */
  readonly connections: number;
  /** How long a connection is kept without a request. */
  readonly idleMs: number;
}

/** At the limit this part of the connections is closed at once, if idle: to find those idle for longest, all are looked at. */
const ROOM_MADE = 0.01;

/**
 * The HTTP server in front: node's parser with its limits set, and an answer in the API's shape for what the parser
 * itself refuses. `onRefused` is told of those that were no request yet, `onFinished` of each answer that went out.
 */
export function createFront(
  limits: FrontLimits,
  onRequest: (request: FrontRequest, response: ServerResponse) => void,
  onRefused: () => void,
  onFinished: () => void,
): FrontServer {
  const server = createServer<typeof FrontRequest, typeof ServerResponse>({
    IncomingMessage: FrontRequest,
    maxHeaderSize: limits.headBytes,
    headersTimeout: wholeMs(limits.headMs),
    // The body has a timer of its own.
    requestTimeout: 0,
    // `accept` looks for it, and answers in the API's shape.
    requireHostHeader: false,
    connectionsCheckingInterval: SLOW_HEAD_CHECK_MS,
    keepAliveTimeout: wholeMs(limits.idleMs),
    noDelay: true,
  });
  const open = new Set<FrontSocket>();
  let answered = 0;
  server.on("connection", (socket: FrontSocket) => {
    // Each request in a pipeline listens for its client's leaving.
    socket.setMaxListeners(0);
    socket.destroySoon = closeInOrder;
    if (open.size >= limits.connections) closeIdle(open, Math.ceil(limits.connections * ROOM_MADE));
    if (open.size >= limits.connections) {
      onRefused();
      socket[CLOSING] = true;
      socket.end(rawError(FULL));
      setTimeout(() => socket.destroy(), FLUSH_MS).unref();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  const onFinish = function (this: ServerResponse): void {
    const socket = this.req.socket as FrontSocket;
    const answers = socket[UNFINISHED]!;
    if (answers.length === 1) answers.pop();
    else answers.splice(answers.indexOf(this), 1);
    if (!this.shouldKeepAlive) socket[CLOSING] = true;
    socket[LAST_ANSWER] = answered++;
    onFinished();
  };
  const serve = (request: FrontRequest, response: ServerResponse): void => {
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
    socket.write(rawError(error));
    closeInOrder.call(socket as Socket);
  };
  server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
    // From here on node leaves the socket to us, its errors too; unheard they would end the process.
    socket.on("error", () => socket.destroy());
    socket.resume();
    refuseRaw(socket, CONNECT);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    // What comes after the refusal is no better; the connection is being closed.
    if (socket.writableEnded && !socket.destroyed) return;
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else refuseRaw(socket, parserError(error, limits));
  });
  return server;
}

/** Beyond it, and a second that node adds, node's timers do not reach. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1001;

/** Node throws on parts of a millisecond. */
function wholeMs(ms: number): number {
  return Math.min(Math.ceil(ms), TIMEOUT_MAX_MS);
}

/**
 * What node calls after the last answer. It would close at once, and whatever of a pipeline is not read then resets the
 * connection, which can cost the client the answers before it (RFC 9112 §9.6): the rest is read for a moment, and dropped.
 */
function closeInOrder(this: Socket): void {
  const linger = (): void => {
    const stop = setTimeout(() => this.destroy(), LINGER_MS).unref();
    this.once("close", () => clearTimeout(stop));
  };
  if (this.writableFinished) linger();
  else this.once("finish", linger);
  this.end();
}

/** Closes up to so many connections that had an answer and have no request, those idle for longest. */
function closeIdle(open: Set<FrontSocket>, most: number): void {
  const idle = [...open].filter((socket) => socket[UNFINISHED]?.length === 0);
  idle.sort((a, b) => a[LAST_ANSWER]! - b[LAST_ANSWER]!);
  for (const socket of idle.slice(0, most)) {
    open.delete(socket);
    socket.destroy();
  }
}

const FULL: ApiError = {
  status: 503,
  code: "gateway_overloaded",
  message: "the gateway has as many connections as it may",
};

const CONNECT: ApiError = {
  status: 405,
  code: "method_not_allowed",
  message: "CONNECT is not allowed",
  headers: { allow: "GET, HEAD, POST" },
};

function parserError(error: NodeJS.ErrnoException, limits: FrontLimits): ApiError {
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

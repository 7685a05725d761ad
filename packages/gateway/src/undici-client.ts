import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock } from "@guidevane/core";
import { Client, type Dispatcher } from "undici";
import type { EngineTlsSecrets } from "./credentials.ts";
import {
  CONNECTION_MAX_AGE_MS,
  type EngineCall,
  type EngineClient,
  type EngineEvents,
  type EngineFailure,
  type EngineRequest,
} from "./engine-client.ts";
import { connectFailure } from "./engine-failure.ts";
import { tlsOptions } from "./engine-tls.ts";
import { dropContinues } from "./interim-answers.ts";

/** More informational answers than this before the real one end the attempt. */
const INFORMATIONAL_MAX = 32;

/** Bytes of an engine's head. Engines add little; a larger head is not an inference server's. */
const HEAD_MAX_BYTES = 65_536;

export interface UndiciClientOptions {
  /** Scheme, host and port. */
  readonly origin: string;
  readonly connectMs: number;
  readonly clock: Clock;
  /** For an https origin; null = as everywhere. */
  readonly tls: EngineTlsSecrets | null;
  /** Opens a TCP or TLS connection; left out = node's. A test puts its own in. */
  readonly connect?: (at: ConnectionOptions, secure: boolean) => Socket;
}

/**
 * An engine's connections, one undici `Client` each, in a list of our own: the last one used is the first one taken
 * again, a connection that has served before is told from a new one, and aborting closes exactly one socket.
 */
export class UndiciEngineClient implements EngineClient {
  readonly #options: UndiciClientOptions;
  #idle: Connection[] = [];
  #closed = false;

  constructor(options: UndiciClientOptions) {
    this.#options = options;
  }

  send(request: EngineRequest, events: EngineEvents): EngineCall {
    const connection = (request.fresh ? undefined : this.#idle.pop()) ?? this.#open();
    const call = new Call(connection, events, this.#options.clock, () => this.#release(connection));
    connection.client.dispatch(
      {
        method: request.method,
        path: request.path,
        headers: request.headers as string[],
        body: request.body,
        // Each phase has a timer of the gateway's own.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      call,
    );
    return call;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle) connection.close();
    this.#idle = [];
  }

  #open(): Connection {
    return new Connection(this.#options, (connection) => {
      if (!this.#idle.includes(connection)) return;
      this.#idle = this.#idle.filter((other) => other !== connection);
      connection.close();
    });
  }

  #release(connection: Connection): void {
    const ageMs = this.#options.clock.nowMs() - connection.openedMs;
    if (this.#closed || !connection.reusable || ageMs >= CONNECTION_MAX_AGE_MS) connection.close();
    else this.#idle.push(connection);
  }
}

class Connection {
  readonly client: Client;
  /** When the present socket was asked for. */
  openedMs = 0;
  /** Requests that the present socket has carried. */
  served = 0;
  /** A request is sent, and its final answer has not begun. */
  awaitsHead = false;
  socket: Socket | null = null;

  constructor(
    { origin, connectMs, clock, tls, connect = openSocket }: UndiciClientOptions,
    onClosed: (connection: Connection) => void,
  ) {
    this.client = new Client(origin, {
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: HEAD_MAX_BYTES,
      connect: ({ hostname, port, protocol }, callback) => {
        const secure = protocol === "https:";
        const host = hostname.replace(/^\[|\]$/g, "");
        const at = { host, port: Number(port) || (secure ? 443 : 80), noDelay: true, keepAlive: true };
        const socket = connect(secure ? { ...at, ...tlsOptions(host, tls) } : at, secure);
        this.socket = socket;
        this.served = 0;
        this.openedMs = clock.nowMs();
        const stopTimer = clock.after(connectMs, () =>
          socket.destroy(new ConnectTimeout(`no connection after ${connectMs} ms`)),
        );
        let answered = false;
        socket.once(secure ? "secureConnect" : "connect", () => {
          answered = true;
          stopTimer();
          dropContinues(socket, () => this.awaitsHead, INFORMATIONAL_MAX);
          callback(null, socket);
        });
        socket.on("error", (error) => {
          stopTimer();
          if (answered) return;
          answered = true;
          callback(error, null);
        });
        socket.once("close", stopTimer);
        return socket;
      },
    });
    this.client.on("disconnect", () => onClosed(this));
  }

  get reusable(): boolean {
    // Bytes of a body that the engine answered without reading would stand before the next request.
    const unsent = this.socket?.writableLength ?? 0;
    return this.socket !== null && unsent === 0 && !this.socket.destroyed && !this.client.destroyed;
  }

  close(): void {
    // Its requests are over or given up; what undici says about that is of no use to anyone.
    this.client.destroy().catch(ignoreDestroyed);
    this.socket?.destroy();
  }
}

/** `destroy` of a client that is already destroyed rejects, and there is nothing left to do about it. */
function ignoreDestroyed(): void {}

function openSocket(at: ConnectionOptions, secure: boolean): Socket {
  return secure ? connectTls(at) : connectTcp(at as TcpNetConnectOpts);
}

class ConnectTimeout extends Error {
  readonly code = "CONNECT_TIMEOUT";
}

class Call implements EngineCall, Dispatcher.DispatchHandler {
  readonly #connection: Connection;
  readonly #events: EngineEvents;
  readonly #clock: Clock;
  readonly #release: () => void;
  readonly #fromMs: number;
  #controller: Dispatcher.DispatchController | null = null;
  #reused = false;
  #began = false;
  #over = false;
  #informational = 0;

  constructor(connection: Connection, events: EngineEvents, clock: Clock, release: () => void) {
    this.#connection = connection;
    this.#events = events;
    this.#clock = clock;
    this.#release = release;
    this.#fromMs = clock.nowMs();
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#connection.close();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#reused = this.#connection.served > 0;
    this.#connection.served += 1;
    this.#connection.awaitsHead = true;
    if (!this.#over) this.#events.onSent(this.#reused ? null : this.#clock.nowMs() - this.#fromMs);
  }

  onResponseStarted(): void {
    this.#began = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusText?: string,
  ): void {
    if (this.#over) return;
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > INFORMATIONAL_MAX)
        this.#fail({ kind: "malformed", message: `more than ${INFORMATIONAL_MAX} informational answers` });
      return;
    }
    this.#connection.awaitsHead = false;
    const rawHeaders = latin1(controller.rawHeaders as readonly Buffer[]);
    const coding = strangeCoding(rawHeaders);
    // Such bytes would reach the client without the header that says what they are.
    if (coding !== null) this.#fail({ kind: "malformed", message: `transfer-encoding ${coding}` });
    else this.#events.onHead(status, statusText ?? "", rawHeaders);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over) this.#events.onData(chunk);
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#events.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#over) this.#fail(this.#classify(error));
  }

  #fail(failure: EngineFailure): void {
    this.#over = true;
    this.#connection.close();
    this.#events.onFail(failure);
  }

  #classify(error: Error & { code?: string }): EngineFailure {
    if (this.#controller === null) return connectFailure(error);
    const code = error.code ?? "";
    const message = error.message === "" ? code : error.message;
    // undici tells of some faults of its parser without a code.
    if (error.name === "HTTPParserError" || MALFORMED_CODES.has(code)) return { kind: "malformed", message };
    if (this.#reused && !this.#began) return { kind: "stale-connection", message };
    return { kind: "closed", message };
  }
}

const MALFORMED_CODES: ReadonlySet<string> = new Set([
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_INVALID_ARG",
]);

/** A transfer coding beside `chunked`; null = none. */
function strangeCoding(headers: readonly string[]): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2)
    if (headers[i]!.toLowerCase() === "transfer-encoding" && headers[i + 1]!.trim().toLowerCase() !== "chunked")
      return headers[i + 1]!.slice(0, SHOWN);
  return null;
}

const SHOWN = 40;

function latin1(raw: readonly Buffer[]): string[] {
  return raw.map((each) => each.toString("latin1"));
}

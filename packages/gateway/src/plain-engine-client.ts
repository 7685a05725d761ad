import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from "node:net";
import type { Clock } from "@guidevane/core";
import {
  CONNECTION_MAX_AGE_MS,
  type EngineCall,
  type EngineClient,
  type EngineEvents,
  type EngineFailure,
  type EngineRequest,
} from "./engine-client.ts";
import { connectFailure } from "./engine-failure.ts";
import { type AnswerEvents, HttpAnswerParser } from "./http-answer-parser.ts";
import { requestBytes } from "./request-bytes.ts";
import { atTurnEnd, type TurnEndTask } from "./turn-end.ts";

export interface PlainClientOptions {
  /** An `http:` origin. */
  readonly origin: string;
  readonly connectMs: number;
  readonly clock: Clock;
  /** Opens a connection; left out = node's. A test puts its own in. */
  readonly connect?: (at: TcpNetConnectOpts) => Socket;
}

/** Idle connections are closed before most servers close theirs: vLLM's after 5 s. */
const IDLE_MS = 4000;
/** One read of a socket at most. One buffer serves all connections of a thread. */
const READ_BYTES = 65_536;

/**
 * An engine's plain HTTP/1.1 connections on bare sockets: one request at a time on each, the last one used taken first. It
 * spends about half as much on a piece of an answer as undici's client, which stays for TLS.
 */
export class PlainEngineClient implements EngineClient {
  readonly #options: PlainClientOptions;
  readonly #host: string;
  readonly #at: { readonly host: string; readonly port: number };
  readonly #idle: Connection[] = [];
  #stopSweep: (() => void) | null = null;
  #closed = false;

  constructor(options: PlainClientOptions) {
    const { host, hostname, port } = new URL(options.origin);
    this.#options = options;
    this.#host = host;
    this.#at = { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? 80 : Number(port) };
  }

  send(request: EngineRequest, events: EngineEvents): EngineCall {
    const connection = (request.fresh ? null : this.#takeIdle()) ?? this.#open();
    return connection.send(requestBytes(request, this.#host), events);
  }

  close(): void {
    this.#closed = true;
    this.#stopSweep?.();
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #takeIdle(): Connection | null {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (connection.usable) return connection;
      connection.destroy();
    }
  }

  #open(): Connection {
    const { clock, connectMs, connect = connectTcp } = this.#options;
    return new Connection({ at: this.#at, connect, clock, connectMs }, (connection, reusable) => {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      if (!reusable || this.#closed || !connection.drained) connection.destroy();
      else this.#keep(connection);
    });
  }

  #keep(connection: Connection): void {
    connection.idleSinceMs = this.#options.clock.nowMs();
    this.#idle.push(connection);
    this.#stopSweep ??= this.#options.clock.after(IDLE_MS, () => this.#sweep());
  }

  /** Closes what has been idle too long; those idle longest stand first. */
  #sweep(): void {
    const { clock } = this.#options;
    this.#stopSweep = null;
    const nowMs = clock.nowMs();
    while (this.#idle.length > 0 && nowMs - this.#idle[0]!.idleSinceMs >= IDLE_MS) this.#idle.shift()!.destroy();
    const oldest = this.#idle[0];
    if (oldest !== undefined)
      this.#stopSweep = clock.after(IDLE_MS - (nowMs - oldest.idleSinceMs), () => this.#sweep());
  }
}

interface ConnectionOptions {
  readonly at: { readonly host: string; readonly port: number };
  readonly connect: NonNullable<PlainClientOptions["connect"]>;
  readonly clock: Clock;
  readonly connectMs: number;
}

/** Told when a connection carries no request any more; twice of one that was idle and then closed. */
type OnFree = (connection: Connection, reusable: boolean) => void;

class Connection implements TurnEndTask {
  idleSinceMs = 0;
  readonly #clock: Clock;
  readonly #onFree: OnFree;
  readonly #socket: Socket;
  readonly #openedMs: number;
  readonly #stopConnectTimer: () => void;
  #connectError: NodeJS.ErrnoException | null = null;
  #connected = false;
  #served = 0;
  #call: Call | null = null;
  /** Waits for the connection, or for the turn's end. */
  #waiting: readonly Uint8Array[] | null = null;

  constructor({ at, connect, clock, connectMs }: ConnectionOptions, onFree: OnFree) {
    this.#clock = clock;
    this.#onFree = onFree;
    this.#openedMs = clock.nowMs();
    this.#socket = connect({
      ...at,
      noDelay: true,
      keepAlive: true,
      onread: { buffer: readBuffer, callback: (count) => this.#read(readBuffer, count) },
    });
    this.#stopConnectTimer = clock.after(connectMs, () => {
      this.#connectError = new Error(`no connection after ${connectMs} ms`);
      this.#socket.destroy();
    });
    this.#socket.once("connect", () => this.#onConnect());
    this.#socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#connectError ??= error;
    });
    this.#socket.once("end", () => this.#onEnd());
    this.#socket.once("close", () => this.#onClose());
  }

  /** Bytes of a body that the engine answered without reading would stand before the next request. */
  get drained(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** Whether an idle connection can carry a request. */
  get usable(): boolean {
    const socket = this.#socket;
    const isYoung = this.#clock.nowMs() - this.#openedMs < CONNECTION_MAX_AGE_MS;
    return isYoung && !socket.destroyed && socket.writable && socket.readable && this.drained;
  }

  send(bytes: readonly Uint8Array[], events: EngineEvents): EngineCall {
    const call = new Call(events, this.#socket, this.#served > 0, (reusable) => this.#free(call, reusable));
    this.#call = call;
    this.#waiting = bytes;
    if (this.#connected) atTurnEnd(this);
    return call;
  }

  atTurnEnd(): void {
    this.#writeWaiting(null);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #free(call: Call, reusable: boolean): void {
    if (this.#call !== call) return;
    this.#call = null;
    this.#onFree(this, reusable);
  }

  #onConnect(): void {
    this.#connected = true;
    this.#stopConnectTimer();
    this.#writeWaiting(this.#clock.nowMs() - this.#openedMs);
  }

  #writeWaiting(connectMs: number | null): void {
    const bytes = this.#waiting;
    this.#waiting = null;
    if (bytes === null || this.#call === null || this.#socket.destroyed) return;
    this.#served += 1;
    if (bytes.length > 1) this.#socket.cork();
    for (const each of bytes) this.#socket.write(each);
    if (bytes.length > 1) this.#socket.uncork();
    this.#call?.sent(connectMs);
  }

  /** Gives false where nothing more should be read. */
  #read(buffer: Buffer, count: number): boolean {
    const call = this.#call;
    if (call === null || this.#waiting !== null) {
      // Bytes that nobody asked for would be taken for the answer of a request that is still to be sent.
      this.#socket.destroy();
      return false;
    }
    call.read(buffer.subarray(0, count));
    return true;
  }

  #onEnd(): void {
    if (this.#call !== null) this.#call.ended();
    else this.#onFree(this, false);
    this.#socket.destroy();
  }

  #onClose(): void {
    this.#stopConnectTimer();
    const call = this.#call;
    if (call === null) {
      this.#onFree(this, false);
      return;
    }
    if (this.#connected) call.closed(this.#connectError?.message ?? "other side closed");
    else call.notConnected(this.#connectError ?? new Error("the connection was closed"));
  }
}

/** Shared by all connections of the thread. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

class Call implements EngineCall, AnswerEvents {
  readonly #events: EngineEvents;
  readonly #socket: Socket;
  readonly #reused: boolean;
  readonly #release: (reusable: boolean) => void;
  readonly #parser: HttpAnswerParser;
  #over = false;

  constructor(events: EngineEvents, socket: Socket, reused: boolean, release: (reusable: boolean) => void) {
    this.#events = events;
    this.#socket = socket;
    this.#reused = reused;
    this.#release = release;
    this.#parser = new HttpAnswerParser(this);
  }

  pause(): void {
    if (!this.#over) this.#socket.pause();
  }

  resume(): void {
    if (!this.#over) this.#socket.resume();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#release(false);
  }

  sent(connectMs: number | null): void {
    if (!this.#over) this.#events.onSent(connectMs);
  }

  read(bytes: Buffer): void {
    if (!this.#over) this.#parser.push(bytes);
  }

  /** The engine has ended its side. */
  ended(): void {
    if (!this.#over && !this.#parser.close()) this.closed("other side closed");
  }

  closed(message: string): void {
    const stale = this.#reused && !this.#parser.began;
    this.#fail({ kind: stale ? "stale-connection" : "closed", message });
  }

  notConnected(error: NodeJS.ErrnoException): void {
    this.#fail(connectFailure(error));
  }

  onHead(status: number, statusText: string, headers: readonly string[]): void {
    if (!this.#over) this.#events.onHead(status, statusText, headers);
  }

  onData(chunk: Buffer): void {
    if (!this.#over) this.#events.onData(chunk);
  }

  onEnd(reusable: boolean): void {
    if (this.#over) return;
    this.#over = true;
    // A paused socket would not see its engine's close.
    if (this.#socket.isPaused()) this.#socket.resume();
    this.#release(reusable);
    this.#events.onEnd();
  }

  onMalformed(message: string): void {
    this.#fail({ kind: "malformed", message });
  }

  #fail(failure: EngineFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.#release(false);
    this.#events.onFail(failure);
  }
}

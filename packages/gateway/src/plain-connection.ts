import type { Socket, TcpNetConnectOpts } from "node:net";
import type { Clock } from "@guidevane/core";
import { CONNECTION_MAX_AGE_MS, type EngineCall, type EngineEvents, type EngineFailure } from "./engine-client.ts";
import { connectFailure } from "./engine-failure.ts";
import { type AnswerEvents, HttpAnswerParser } from "./http-answer-parser.ts";
import { atTurnEnd, type TurnEndTask } from "./turn-end.ts";

export interface ConnectionOptions {
  readonly at: { readonly host: string; readonly port: number };
  readonly connect: (at: TcpNetConnectOpts) => Socket;
  readonly clock: Clock;
  readonly connectMs: number;
}

/** Told when a connection carries no request any more; twice of one that was idle and then closed. */
type OnFree = (connection: PlainConnection, reusable: boolean) => void;

/** One connection to an engine, with the request that it carries. */
export class PlainConnection implements TurnEndTask {
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

/** One read of a socket at most. */
const READ_BYTES = 65_536;
/** Shared by all connections of the thread. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/** One request on a connection, and its answer as the parser reads it. */
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

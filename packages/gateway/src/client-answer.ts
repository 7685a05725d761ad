import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "@guidevane/core";
import { headerOf, headersToClient } from "./headers.ts";
import { atTurnEnd, type TurnEndTask } from "./turn-end.ts";

/**
 * A client that takes nothing more for this long is gone, whatever its connection says: an engine and its place in the
 * batch are not held for it. Slow readers take something within seconds.
 */
const CLIENT_STALL_MS = 60_000;

/** Up to this much is written as text: node writes that from the stack. */
const ONE_WRITE_MAX_BYTES = 8192;

/** The head of an answer as an engine sent it. */
export interface EngineHead {
  readonly status: number;
  readonly statusText: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

export interface ClientAnswerOptions {
  readonly response: ServerResponse;
  /** The client's connection. */
  readonly socket: Socket;
  readonly clock: Clock;
  /** The gateway's own headers; names and values in turn. */
  readonly answerHeaders: readonly string[];
}

/** Told of the client's pace. */
export interface ClientPace {
  /** It reads too slowly: nothing more should be read for it until `onRoom`. */
  onFull(): void;
  onRoom(): void;
}

/** The client's side of one answer: what comes in one turn of the event loop is written once, and no faster than it is read. */
export class ClientAnswer implements TurnEndTask {
  readonly #options: ClientAnswerOptions;
  readonly #pace: ClientPace;
  #pending: Buffer[] = [];
  #flushing = false;
  #headFlushed = false;
  /** Whose `drain` says that the client has room again; null = it has. */
  #full: ServerResponse | Socket | null = null;
  #over = false;
  #stopStall: () => void = noTimer;
  /** The body of an answer that goes out as a whole at the turn's end, a letter a byte. */
  #whole = "";
  /** Bytes that the head promises and that are still to come; null = it promises no length. */
  #missing: number | null = null;

  constructor(options: ClientAnswerOptions, pace: ClientPace) {
    this.#options = options;
    this.#pace = pace;
  }

  /** The client has not yet taken what it was sent. */
  get full(): boolean {
    return this.#full !== null;
  }

  /** Whether more may be written: the head promised no length. */
  get open(): boolean {
    return this.#missing === null;
  }

  /** Sends the head, at the end of this turn at the latest. */
  begin({ status, statusText, headers }: EngineHead): void {
    const { response, answerHeaders } = this.#options;
    const length = headerOf(headers, "content-length");
    // An answer to these has no body, whatever it says of its length (RFC 9110 §8.6).
    if (length !== undefined && status !== 204 && status !== 304) this.#missing = Number(length);
    response.sendDate = false;
    response.writeHead(status, statusText, headersToClient(headers, answerHeaders, status));
    this.#schedule();
  }

  /** @param chunk need not outlast this turn and its ticks */
  write(chunk: Buffer): void {
    this.#pending.push(chunk);
    if (this.#missing !== null) this.#missing -= chunk.length;
    this.#schedule();
  }

  /** The end in good order, after `last` where the head leaves room for it; what is shorter than its head said is cut. */
  end(last = ""): void {
    if (this.#missing !== null && this.#missing !== 0) {
      this.cut();
      return;
    }
    const { response } = this.#options;
    this.#over = true;
    if (last === "" && this.#takeWhole()) return;
    // The last pieces and the end go out together; ending uncorks.
    if (response.chunkedEncoding) response.socket?.cork();
    this.#flush();
    response.end(last);
    this.#leave();
  }

  /** An answer that was taken as a whole goes out. */
  atTurnEnd(): void {
    const { response } = this.#options;
    const { socket } = response;
    if (response.destroyed) return;
    if (socket === null || socket.writableLength > 0) {
      response.end(this.#whole, "latin1");
      return;
    }
    socket.cork();
    response.write(this.#whole, "latin1");
    socket.uncork();
    response.end();
  }

  /** The end of what can't be ended in good order: the client has what came, and sees that something is missing. */
  cut(): void {
    const { response } = this.#options;
    this.#flush();
    this.#over = true;
    // What was written in this turn goes out at its end.
    setImmediate(() => response.destroy());
    this.#leave();
  }

  /** The client has left. */
  abandon(): void {
    this.#over = true;
    this.#leave();
  }

  #leave(): void {
    this.#full?.off("drain", this.#onDrain);
    // The rest of a whole answer may still wait for its client.
    this.#full?.once("drain", this.#stopStall);
  }

  #schedule(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(() => {
      this.#flushing = false;
      if (!this.#over) this.#flush();
    });
  }

  #flush(): void {
    const { response } = this.#options;
    const pending = this.#pending;
    if (pending.length === 0) {
      if (!this.#headFlushed && !response.writableEnded) response.flushHeaders();
      this.#headFlushed = true;
      return;
    }
    this.#pending = [];
    const { socket } = response;
    const isFirst = !this.#headFlushed;
    this.#headFlushed = true;
    // Node writes a chunk in three pieces. With nothing before it in the answer it goes to the connection in one.
    if (response.chunkedEncoding && socket !== null && response.writableLength === 0) {
      if (isFirst) {
        socket.cork();
        response.flushHeaders();
      }
      if (!socket.write(framed(pending))) this.#fill(socket);
      if (isFirst) socket.uncork();
      return;
    }
    if (!response.write(Buffer.concat(pending))) this.#fill(response);
  }

  /** Takes an answer that is short, has its length and is here as a whole, to be written in one piece with its head. */
  #takeWhole(): boolean {
    const { response } = this.#options;
    const { socket, chunkedEncoding } = response;
    const [body] = this.#pending;
    const isWhole = !this.#headFlushed && !chunkedEncoding && this.#pending.length === 1;
    if (!isWhole || body!.length > ONE_WRITE_MAX_BYTES || socket === null || socket.writableLength > 0) return false;
    this.#pending = [];
    // Node joins a text to its head, but never bytes.
    this.#whole = body!.toString("latin1");
    atTurnEnd(this);
    return true;
  }

  /** The client does not keep up. */
  #fill(full: ServerResponse | Socket): void {
    if (this.#full !== null) return;
    this.#full = full;
    this.#armStall();
    this.#pace.onFull();
    full.once("drain", this.#onDrain);
  }

  #armStall(): void {
    const { clock, response, socket } = this.#options;
    this.#stopStall = clock.after(CLIENT_STALL_MS, () => {
      if (response.writableFinished || response.destroyed) return;
      // In a pipeline it may be waiting for the answers before it.
      if (response.socket === null) this.#armStall();
      else socket.destroy();
    });
  }

  readonly #onDrain = (): void => {
    this.#full = null;
    this.#stopStall();
    this.#pace.onRoom();
  };
}

/** An answer that was kept back goes to the client after all, whole and as it was. */
export function passOn(
  response: ServerResponse,
  kept: EngineHead & { readonly body: Buffer },
  ownHeaders: readonly string[],
): void {
  response.sendDate = false;
  response.writeHead(kept.status, kept.statusText, headersToClient(kept.headers, ownHeaders, kept.status));
  response.end(kept.body);
}

/** One chunk of all of them, RFC 9112 §7.1. */
function framed(pieces: readonly Buffer[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const size = length.toString(16);
  const frame = Buffer.allocUnsafe(size.length + 2 + length + 2);
  let at = frame.write(`${size}\r\n`, 0, "latin1");
  for (const piece of pieces) {
    frame.set(piece, at);
    at += piece.length;
  }
  frame[at] = CR;
  frame[at + 1] = LF;
  return frame;
}

const CR = 0x0d;
const LF = 0x0a;

function noTimer(): void {}

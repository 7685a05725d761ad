import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, constants, gunzip, zstdDecompress } from "node:zlib";
import type { Clock } from "@guidevane/core";
import type { ApiError } from "./api-error.ts";
import type { BodyMemory, BodyShare } from "./body-memory.ts";
import type { Exchange } from "./exchange.ts";
import { bodyCame, waitsForTurn } from "./expect-continue.ts";
import type { BodySink, FrontRequest } from "./front-request.ts";
import type { LoopTurns } from "./loop-turns.ts";

export interface BodyLimits {
  readonly bodyBytes: number;
  readonly bodyMs: number;
}

export type BodyRead =
  | { readonly kind: "body"; readonly bytes: Buffer }
  | { readonly kind: "refused"; readonly error: ApiError }
  /** The client left before it had said everything. */
  | { readonly kind: "gone" };

/** The refusal of a body that says beforehand that it is too large; null for one that may come. */
export function refuseLength(request: IncomingMessage, { bodyBytes }: BodyLimits): ApiError | null {
  return Number(request.headers["content-length"]) > bodyBytes ? tooLarge(bodyBytes) : null;
}

/** A body beyond this takes milliseconds to join, check and scan: one a turn of the event loop. */
const HEAVY_BYTES = 1_048_576;

/** What reading bodies works with. One per thread. */
export interface BodyParts {
  readonly clock: Clock;
  readonly turns: LoopTurns;
  readonly memory: BodyMemory;
}

/**
 * Collects a request's body into one buffer, under the limits of size and time, which runs from when the client may send. A
 * large one waits for a turn of its own.
 */
export function readBody(
  exchange: Asking,
  limits: BodyLimits,
  { clock, turns }: BodyParts,
  onRead: (read: BodyRead) => void,
): void {
  exchange.request.readInto(new BodyReading(exchange, limits, { clock, turns }, onRead));
}

type Asking = Pick<Exchange, "request" | "response"> & { readonly share: Pick<BodyShare, "add"> };

/**
 * A body on its way in. An object: with closures in its place, one of them held by the request, each request that had grown
 * old in memory kept those after it until the next full collection, and young collections took 10 ms (`node --trace-gc`).
 */
class BodyReading implements BodySink {
  readonly #request: FrontRequest;
  readonly #response: ServerResponse;
  readonly #limits: BodyLimits;
  readonly #clock: Clock;
  readonly #turns: LoopTurns;
  readonly #share: Pick<BodyShare, "add">;
  readonly #onRead: (read: BodyRead) => void;
  #stopTimer: (() => void) | null = null;
  #isOver = false;
  readonly #bytes = new ByteCollector();

  constructor(
    { request, response, share }: Asking,
    limits: BodyLimits,
    { clock, turns }: Pick<BodyParts, "clock" | "turns">,
    onRead: (read: BodyRead) => void,
  ) {
    this.#request = request;
    this.#response = response;
    this.#limits = limits;
    this.#clock = clock;
    this.#turns = turns;
    this.#share = share;
    this.#onRead = onRead;
    if (waitsForTurn(request, response)) response.once("socket", () => this.#startTimer());
    else this.#startTimer();
  }

  onChunk(chunk: Buffer): void {
    this.#bytes.add(chunk);
    if (this.#bytes.length > this.#limits.bodyBytes) this.#refuse(tooLarge(this.#limits.bodyBytes));
    else if (!this.#share.add(chunk.length)) this.#refuse(NO_ROOM);
  }

  onWhole(): void {
    this.#end();
    bodyCame(this.#request, this.#response);
    if (this.#bytes.length <= HEAVY_BYTES) this.#give();
    // Whether the client is still there is asked later.
    else void this.#turns.next().then(() => this.#give());
  }

  onGone(): void {
    this.#end();
    this.#onRead({ kind: "gone" });
  }

  #give(): void {
    this.#onRead({ kind: "body", bytes: this.#bytes.take() });
  }

  #refuse(error: ApiError): void {
    this.#end();
    this.#request.readInto(null);
    this.#onRead({ kind: "refused", error });
  }

  #startTimer(): void {
    if (this.#isOver) return;
    const { bodyMs } = this.#limits;
    this.#stopTimer = this.#clock.after(bodyMs, () =>
      this.#refuse({
        status: 408,
        code: "request_timeout",
        message: `the body was not complete after ${bodyMs} ms`,
        close: true,
      }),
    );
  }

  #end(): void {
    this.#isOver = true;
    this.#stopTimer?.();
  }
}

/** A chunk is a view of what was read from the socket with it; a body of one-byte chunks would hold a thousand times its size. */
const CHUNKS_MAX = 256;

/** Joins chunks, copying each at most twice. */
class ByteCollector {
  length = 0;
  #joined: Buffer[] = [];
  #chunks: Buffer[] = [];

  add(chunk: Buffer): void {
    this.length += chunk.length;
    if (this.#chunks.push(chunk) < CHUNKS_MAX) return;
    this.#joined.push(Buffer.concat(this.#chunks));
    this.#chunks = [];
  }

  take(): Buffer {
    if (this.#joined.length === 0 && this.#chunks.length === 1) return this.#chunks[0]!;
    const all = [...this.#joined, ...this.#chunks];
    return Buffer.concat(all, this.length);
  }
}

export type Readable =
  | { readonly kind: "body"; readonly bytes: Buffer }
  | { readonly kind: "refused"; readonly error: ApiError };

type Inflate = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

/** A frame may ask for a window of gigabytes; over HTTP for 8 MB at most (RFC 9659). */
const ZSTD_PARAMS = { [constants.ZSTD_d_windowLogMax]: 23 };
const inflateZstd = promisify(zstdDecompress);

const INFLATE: ReadonlyMap<string, Inflate> = new Map<string, Inflate>([
  ["gzip", promisify(gunzip)],
  ["br", promisify(brotliDecompress)],
  ["zstd", (bytes, options) => inflateZstd(bytes, { ...options, params: ZSTD_PARAMS })],
]);

/** Lower case, empty for a body that is sent as it is. */
function codingOf(encoding: string | undefined): string {
  const coding = (encoding ?? "").trim().toLowerCase();
  return coding === "identity" ? "" : coding;
}

/** Whether a body with this content-encoding can be read; the answer where it can't. */
export function refuseEncoding(encoding: string | undefined): ApiError | null {
  const coding = codingOf(encoding);
  if (coding === "" || INFLATE.has(coding)) return null;
  return {
    status: 415,
    code: "unsupported_encoding",
    message: `content-encoding ${coding.slice(0, SHOWN_CHARACTERS)} is not read; send identity, ${[...INFLATE.keys()].join(" or ")}`,
    param: "content-encoding",
    close: true,
  };
}

/** Whether a body with this content-encoding must be inflated before its fields can be read. */
export function isCompressed(encoding: string | undefined): boolean {
  return encoding !== undefined && codingOf(encoding) !== "";
}

/** The text of a compressed body, only to read its fields: what goes on to the engine is what the client sent. */
export async function inflateBody(
  bytes: Buffer,
  encoding: string | undefined,
  bodyBytes: number,
  { turns, memory }: BodyParts,
  share: Pick<BodyShare, "add">,
): Promise<Readable> {
  const coding = codingOf(encoding);
  const inflate = INFLATE.get(coding)!;
  const text = await memory.inflate(() => inflated(inflate, coding, bytes, bodyBytes));
  if (text.kind === "refused") return text;
  if (!share.add(text.bytes.length)) return { kind: "refused", error: NO_ROOM };
  if (text.bytes.length > HEAVY_BYTES) await turns.next();
  return checkText(text.bytes);
}

/** The selector reads bytes and lets those inside a string pass; an engine would not. */
export function checkText(bytes: Buffer): Readable {
  return isUtf8(bytes) ? { kind: "body", bytes } : NOT_UTF8_REFUSED;
}

async function inflated(inflate: Inflate, coding: string, bytes: Buffer, bodyBytes: number): Promise<Readable> {
  try {
    return { kind: "body", bytes: await inflate(bytes, { maxOutputLength: bodyBytes }) };
  } catch (error) {
    if (error instanceof RangeError && (error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE")
      return { kind: "refused", error: tooLarge(bodyBytes) };
    return {
      kind: "refused",
      error: {
        status: 400,
        code: "invalid_encoding",
        message: `the body is not ${coding}: ${error instanceof Error ? error.message : String(error)}`,
        param: "content-encoding",
      },
    };
  }
}

const SHOWN_CHARACTERS = 80;

const NO_ROOM: ApiError = {
  status: 503,
  code: "gateway_overloaded",
  message: "the bodies of other requests fill the gateway's memory; try again later",
  headers: { "retry-after": "1" },
  close: true,
};

const NOT_UTF8: ApiError = { status: 400, code: "invalid_json", message: "the body is not UTF-8" };
const NOT_UTF8_REFUSED: Readable = { kind: "refused", error: NOT_UTF8 };

function tooLarge(limitBytes: number): ApiError {
  return {
    status: 413,
    code: "body_too_large",
    message: `the body is over the limit of ${limitBytes} bytes`,
    close: true,
  };
}

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip } from "node:zlib";
import type { Clock } from "@guidevane/core";
import type { ApiError } from "./api-error.ts";

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

/** Collects a request's body into one buffer, under the limits of size and time. */
export function readBody(request: IncomingMessage, limits: BodyLimits, clock: Clock): Promise<BodyRead> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (read: BodyRead): void => {
      stopTimer();
      request.off("data", onData).off("end", onEnd).off("close", onGone).off("error", onGone);
      // Unhandled, a later error of an unread request would end the process.
      request.on("error", ignoreLateError);
      resolve(read);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limits.bodyBytes) finish({ kind: "refused", error: tooLarge(limits.bodyBytes) });
      else chunks.push(chunk);
    };
    const onEnd = (): void =>
      finish({ kind: "body", bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length) });
    const onGone = (): void => finish({ kind: "gone" });
    const stopTimer = clock.after(limits.bodyMs, () =>
      finish({
        kind: "refused",
        error: {
          status: 408,
          code: "request_timeout",
          message: `the body was not complete after ${limits.bodyMs} ms`,
          close: true,
        },
      }),
    );
    request.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
  });
}

/** The client has left or was refused; that was answered already. */
function ignoreLateError(): void {}

export type Readable =
  | { readonly kind: "body"; readonly bytes: Buffer }
  | { readonly kind: "refused"; readonly error: ApiError };

const inflateGzip = promisify(gunzip);
const inflateBrotli = promisify(brotliDecompress);

/** Whether a body with this content-encoding can be read; the answer where it can't. */
export function refuseEncoding(encoding: string | undefined): ApiError | null {
  const coding = (encoding ?? "").trim().toLowerCase();
  if (coding === "" || coding === "identity" || coding === "gzip" || coding === "br") return null;
  return {
    status: 415,
    code: "unsupported_encoding",
    message: `content-encoding ${coding} is not read; send identity, gzip or br`,
    param: "content-encoding",
    close: true,
  };
}

/** The body as UTF-8 text, only to read its fields: what goes on to the engine is what the client sent. */
export async function readable(bytes: Buffer, encoding: string | undefined, bodyBytes: number): Promise<Readable> {
  const coding = (encoding ?? "").trim().toLowerCase();
  const plain = coding === "" || coding === "identity";
  const inflated = plain ? ({ kind: "body", bytes } as const) : await inflate(bytes, coding, bodyBytes);
  // The selector reads bytes and lets those inside a string pass; an engine would not.
  return inflated.kind === "refused" || isUtf8(inflated.bytes) ? inflated : { kind: "refused", error: NOT_UTF8 };
}

async function inflate(bytes: Buffer, coding: string, bodyBytes: number): Promise<Readable> {
  try {
    const decompress = coding === "gzip" ? inflateGzip : inflateBrotli;
    return { kind: "body", bytes: await decompress(bytes, { maxOutputLength: bodyBytes }) };
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

const NOT_UTF8: ApiError = { status: 400, code: "invalid_json", message: "the body is not UTF-8" };

function tooLarge(limitBytes: number): ApiError {
  return {
    status: 413,
    code: "body_too_large",
    message: `the body is over the limit of ${limitBytes} bytes`,
    close: true,
  };
}

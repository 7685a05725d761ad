import type { IncomingMessage, ServerResponse } from "node:http";

/** A refusal with its status and a code that never changes its meaning. */
export class AdminError extends Error {
  override readonly name: string = "AdminError";
  readonly status: number;
  readonly code: string;
  /** The method that would have been taken, for a 405. */
  readonly allow: string | null;

  constructor(status: number, code: string, message: string, allow: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.allow = allow;
  }
}

const MAX_BODY_BYTES = 1_048_576;

/** @throws AdminError 413 over 1 MiB, 400 where the body is not JSON */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Kept open when this stops early: the refusal goes back over the same connection.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new AdminError(413, "body_too_large", `the body is over ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
  } catch {
    throw new AdminError(400, "bad_request", "the body is not JSON");
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  // A final newline, for people who ask by curl.
  response.end(`${JSON.stringify(body)}\n`);
}

export function sendError(response: ServerResponse, error: unknown): void {
  const known = error instanceof AdminError;
  const status = known ? error.status : 500;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (known && error.allow !== null) response.setHeader("allow", error.allow);
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  // An unread body would be taken for the next request.
  if (status === 413) response.setHeader("connection", "close");
  sendJson(response, status, {
    error: {
      message: error instanceof Error ? error.message : String(error),
      type: status >= 500 ? "server_error" : "invalid_request_error",
      code: known ? error.code : "internal_error",
    },
  });
}

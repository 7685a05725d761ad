import type { IncomingMessage, ServerResponse } from "node:http";
import { AdminError } from "./admin-http.ts";
import type { Control } from "./control.ts";
import type { SnapshotBody } from "./published.ts";

/** Longest wait of a long poll. Proxies tend to cut quiet answers after 60 s. */
const MAX_WAIT_S = 50;

/**
 * A cluster's snapshot: 200 with its tag and checksum; 304 when the caller has it, at once or after `wait` seconds
 * without a newer one; 503 `no_snapshot` while there is none.
 */
export async function serveSnapshot(
  control: Control,
  cluster: string,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const waitMs = waitOf(url) * 1000;
  const has = tagsOf(request.headers["if-none-match"]);
  let body = control.published.bodyOf(cluster);
  if (waitMs > 0 && (body === undefined || has.includes(body.tag))) {
    await nextPublication(control, waitMs, response);
    body = control.published.bodyOf(cluster);
  }
  if (response.destroyed) return;
  if (body === undefined) throw new AdminError(503, "no_snapshot", "nothing has been published yet");
  if (has.includes(body.tag)) {
    response.writeHead(304, { etag: etagOf(body) });
    response.end();
    return;
  }
  send(request, response, body);
}

function send(request: IncomingMessage, response: ServerResponse, body: SnapshotBody): void {
  const zipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(request.headers["accept-encoding"] ?? ""));
  const bytes = zipped ? body.gzipped : body.json;
  response.writeHead(200, {
    "content-type": "application/json",
    ...(zipped ? { "content-encoding": "gzip" } : {}),
    vary: "accept-encoding",
    "cache-control": "no-cache",
    "content-length": bytes.length,
    etag: etagOf(body),
    "x-guidevane-checksum": body.sha256,
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

function nextPublication(control: Control, waitMs: number, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stop();
      cancel();
      response.off("close", done);
      resolve();
    };
    const stop = control.published.onReplace(done);
    const cancel = control.clock.after(waitMs, done);
    response.on("close", done);
  });
}

function waitOf(url: URL): number {
  const raw = url.searchParams.get("wait");
  if (raw === null) return 0;
  const seconds = Number(raw);
  if (raw === "" || !Number.isFinite(seconds) || seconds < 0)
    throw new AdminError(400, "bad_request", `wait must be seconds, 0 or more (got ${JSON.stringify(raw)})`);
  return Math.min(seconds, MAX_WAIT_S);
}

/** Tags of an `If-None-Match`. A proxy that compresses marks them weak, which for a whole body is no difference. */
function tagsOf(header: string | undefined): string[] {
  return [...(header ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1]!);
}

function etagOf({ tag }: SnapshotBody): string {
  return `"${tag}"`;
}

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { GuidevaneError } from "@guidevane/core";
import { AdminError } from "./admin-http.ts";

/** Who may speak to the admin API. */
export interface Guard {
  /** Asked of every call but the probes and the page itself; null = a loopback address without a token. */
  readonly token: string | null;
  readonly loopback: boolean;
}

/** @throws GuidevaneError `bad_usage` when the address can be reached from outside and no token is set */
export function createGuard(host: string, token: string | null): Guard {
  const loopback = isLoopback(host);
  if (!loopback && (token === null || token === ""))
    throw new GuidevaneError(
      "bad_usage",
      `the admin address ${host} is not loopback: set GUIDEVANE_ADMIN_TOKEN, or listen on 127.0.0.1`,
    );
  return { token: token === "" ? null : token, loopback };
}

/** Load balancers and browsers ask these before they know a token; they say nothing of the fleet. */
const OPEN_PATHS = new Set(["/", "/healthz", "/readyz"]);

/** @throws AdminError 401 without the token; 403 for a call that a web page of another site made */
export function admit(request: IncomingMessage, path: string, { token, loopback }: Guard): void {
  if (token === null) {
    // Without a token the address is the only guard, and a browser on this machine passes it for any site whose name
    // was made to resolve to loopback.
    const name = hostName(request.headers.host);
    if (loopback && name !== null && !isLoopback(name))
      throw new AdminError(403, "foreign_host", `the Host ${JSON.stringify(name)} is not this machine`);
    const { origin } = request.headers;
    if (origin !== undefined && hostOf(origin) !== request.headers.host)
      throw new AdminError(403, "foreign_origin", `calls from ${origin} are refused`);
    return;
  }
  if (OPEN_PATHS.has(path)) return;
  const given = /^bearer +(.+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
  if (!timingSafeEqual(digest(given), digest(token)))
    throw new AdminError(401, "unauthorized", "the bearer token is missing or wrong");
}

export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(bare);
}

function hostName(header: string | undefined): string | null {
  return header === undefined ? null : header.replace(/:\d+$/, "");
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

import type { IncomingMessage, ServerResponse } from "node:http";

/** What browsers of other origins may do: `gateway.cors`. No origin = nothing is said to browsers. */
export interface CorsRules {
  /** Exact origins (`https://chat.example`), or `*` for any. */
  readonly origins: readonly string[];
}

/** How long a browser may remember a preflight's answer, s: the most that Chromium takes. */
const MAX_AGE_S = 7200;

/** The gateway's headers that a page's script may read. */
const EXPOSED = [
  "x-request-id",
  "x-guidevane-engine",
  "x-guidevane-snapshot",
  "x-guidevane-reason",
  "x-guidevane-key-source",
  "x-guidevane-shed-reason",
  "retry-after",
].join(", ");

const NOTHING: readonly string[] = [];

/** What every answer to this request says to a browser; names and values in turn. Empty where there are no rules. */
export function corsHeaders(request: IncomingMessage, { origins }: CorsRules): readonly string[] {
  if (origins.length === 0) return NOTHING;
  const { origin } = request.headers;
  const any = origins.includes("*");
  // A cache between must not give one origin's answer to another.
  const vary = any ? NOTHING : ["vary", "origin"];
  if (origin === undefined || !(any || origins.includes(origin))) return vary;
  return [...vary, "access-control-allow-origin", any ? "*" : origin, "access-control-expose-headers", EXPOSED];
}

/** Answers a browser that asks what it may send. */
export function preflightAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  rules: CorsRules,
  allow: string,
): void {
  response.writeHead(204, [...preflightHeaders(request, rules, allow)]);
  response.end();
}

/** All headers of a preflight's answer. To an origin that may not ask nothing is allowed. @param allow methods of the path */
function preflightHeaders(request: IncomingMessage, rules: CorsRules, allow: string): readonly string[] {
  const own = corsHeaders(request, rules);
  if (!own.includes("access-control-allow-origin")) return [...own, "allow", allow];
  const asked = request.headers["access-control-request-headers"];
  return [
    ...own,
    ...["allow", allow, "access-control-allow-methods", allow],
    // Named one by one: a wildcard would not cover `authorization`.
    ...(asked === undefined ? [] : ["access-control-allow-headers", asked]),
    ...["access-control-max-age", String(MAX_AGE_S)],
  ];
}

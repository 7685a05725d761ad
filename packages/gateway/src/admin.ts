import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type ClusterSnapshot, type EngineSignals, planColumns, type SignalState } from "@guidevane/core";
import type { PenaltyVerdict } from "@guidevane/guard";
import { isLoopback } from "./address.ts";
import type { Decision } from "./decision.ts";
import type { EngineStates } from "./engine-states.ts";
import { ENGINES_A_TURN, inTurns, partsInTurns } from "./loop-turns.ts";
import { sumMetrics } from "./metric-text.ts";
import { figuresOf, type GatewayMetrics, type MetricFigures } from "./metrics.ts";

export interface AdminParts {
  readonly states: EngineStates;
  readonly penaltyOf: (engine: string) => PenaltyVerdict;
  /** Attempts under way at an engine. */
  readonly inFlight: (engine: string) => number;
  /** What the process counts itself. */
  readonly metrics: GatewayMetrics;
  /** What its request threads count. */
  readonly threadMetrics: () => Promise<MetricFigures[]>;
  /** What became of the last request with that id, and why. */
  readonly findDecision: (id: string) => Promise<Decision | null>;
  /** The one in use. */
  readonly snapshot: () => ClusterSnapshot;
  readonly sinceControlMs: () => number;
  readonly nowMs: () => number;
  /** Why the gateway is not ready; null = it is. */
  readonly notReady: () => string | null;
  /** Bearer token that every request must bring; null = none (loopback). */
  readonly token: string | null;
}

/** The admin port: is it alive, is it ready, what does it see. */
export function createAdmin(parts: AdminParts): Server {
  return createServer((request, response) => {
    answer(parts, request, response).catch((error: unknown) => {
      send(response, 500, failure("internal_error", error instanceof Error ? error.message : String(error)));
    });
  });
}

async function answer(parts: AdminParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  const path = (request.url ?? "").split("?", 1)[0]!;
  // Probes of an orchestrator bring no token, and learn nothing but yes or no.
  if (path === "/healthz") return send(response, 200, { status: "ok" });
  if (path === "/readyz") {
    const why = parts.notReady();
    return why === null ? send(response, 200, { status: "ready" }) : send(response, 503, { status: "not ready", why });
  }
  if (parts.token === null && !ownHost(request.headers.host))
    return send(
      response,
      403,
      failure("forbidden", `the Host ${JSON.stringify(request.headers.host)} is not this machine`),
    );
  if (!authorised(parts.token, request.headers.authorization))
    return send(response, 401, failure("unauthorized", "a bearer token is required"), { "www-authenticate": "Bearer" });
  const id = path.startsWith(DECISIONS) ? idIn(path.slice(DECISIONS.length)) : null;
  if (path !== "/metrics" && path !== "/v1/engines" && id === null)
    return send(response, 404, failure("not_found", `there is no ${path} here`));
  if (request.method !== "GET" && request.method !== "HEAD")
    return send(response, 405, failure("method_not_allowed", `${request.method} is not allowed here`), {
      allow: "GET, HEAD",
    });
  if (path === "/v1/engines") return sendText(response, 200, await partsInTurns(engineAnswers(parts)));
  if (id !== null) {
    const decision = await parts.findDecision(id);
    if (decision !== null) return send(response, 200, decision);
    return send(response, 404, failure("decision_not_found", `no request ${JSON.stringify(id)} is remembered here`));
  }
  await inTurns(parts.states.all(), ENGINES_A_TURN, ({ id }) => {
    parts.metrics.inFlight.set({ engine: id }, parts.inFlight(id));
    parts.metrics.penaltyFactor.set({ engine: id }, parts.penaltyOf(id).factor);
  });
  parts.metrics.snapshotAgeSeconds.set(parts.sinceControlMs() / 1000);
  const own = await figuresOf(parts.metrics.registry);
  const text = await sumMetrics([own, ...(await parts.threadMetrics())]);
  response.writeHead(200, { "content-type": parts.metrics.registry.contentType });
  response.end(request.method === "HEAD" ? undefined : text);
}

const DECISIONS = "/v1/decisions/";

/** A request's id as a path has it; null where it can't be one. */
function idIn(text: string): string | null {
  try {
    const id = decodeURIComponent(text);
    return /^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : null;
  } catch {
    return null;
  }
}

/** The body of a refusal, in the shape of every other one. */
function failure(code: string, message: string): unknown {
  const type = code === "internal_error" ? "server_error" : "invalid_request_error";
  return { error: { message, type, code } };
}

/** `GET /v1/engines`, CONTRACT §7, in parts: this thread may serve requests. */
function* engineAnswers({ states, penaltyOf, inFlight, snapshot, nowMs }: AdminParts): Generator<void, string> {
  // Both at one moment: engines that join meanwhile are not in this snapshot.
  const engines = states.all();
  const shares = yield* sharesOf(snapshot());
  const texts: string[] = [];
  for (const { id, spec, health } of engines) {
    if (texts.length > 0 && texts.length % ENGINES_A_TURN === 0) yield;
    const facts = health.facts();
    const { factor, evidence } = penaltyOf(id);
    const answer = {
      id,
      health: facts.health,
      healthReason: facts.reason,
      healthAgeMs: Math.round(nowMs() - facts.sinceMs),
      share: Object.fromEntries(shares.get(id) ?? []),
      inFlight: inFlight(id),
      penalty: { factor, evidence },
      signals: states.signals(id) ?? noSignals(spec.kind === "openai" ? "not-offered" : "missing"),
    };
    texts.push(JSON.stringify(answer));
  }
  return `[${texts.join(",")}]`;
}

/** Cells whose engines are noted in one part. */
const CELLS_A_PART = 16;

/** The weights of each engine that has any, by class. */
function* sharesOf(snapshot: ClusterSnapshot): Generator<void, Map<string, [string, number][]>> {
  const { engines, pairAt, pairEngine, weights } = planColumns(snapshot);
  const shares = new Map<string, [string, number][]>();
  for (const [at, { class: name }] of snapshot.cells.entries()) {
    if (at > 0 && at % CELLS_A_PART === 0) yield;
    for (let pair = pairAt[at]!; pair < pairAt[at + 1]!; pair++) {
      const id = engines[pairEngine[pair]!]!;
      const own = shares.get(id);
      if (own === undefined) shares.set(id, [[name, weights[pair]!]]);
      else own.push([name, weights[pair]!]);
    }
  }
  return shares;
}

function noSignals(state: SignalState): EngineSignals {
  const none = { value: null, state, ageMs: null };
  return { running: none, waiting: none, kvUsage: none, readyReplicas: none };
}

/**
 * Without a token the loopback address is the only guard, and a browser on this machine passes it for any site whose name
 * was made to resolve there.
 */
function ownHost(host: string | undefined): boolean {
  return host === undefined || isLoopback(host.replace(/:\d+$/, "").replace(/^\[|\]$/g, ""));
}

function authorised(token: string | null, header: string | undefined): boolean {
  if (token === null) return true;
  const given = /^bearer\s+(.*?)\s*$/i.exec(header ?? "")?.[1] ?? "";
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendText(response, status, JSON.stringify(body), headers);
}

function sendText(
  response: ServerResponse,
  status: number,
  json: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  // A final newline, for people who ask by curl.
  const text = `${json}\n`;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    ...headers,
  });
  response.end(response.req.method === "HEAD" ? undefined : text);
}

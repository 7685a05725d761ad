import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { knownNames } from "@guidevane/core";
import { serveDiff, serveWhatIf } from "./admin-analysis.ts";
import { takeDemand } from "./admin-demand.ts";
import { serveExplain } from "./admin-explain.ts";
import { admit, type Guard } from "./admin-guard.ts";
import { AdminError, sendError, sendJson } from "./admin-http.ts";
import { operatorAnswer, readOn, takeFreeze, takePin, takeRollback } from "./admin-operator.ts";
import { serveSnapshot } from "./admin-snapshot.ts";
import type { Control } from "./control.ts";
import { engineAnswers } from "./engine-answers.ts";
import { setAdminState } from "./operator-hand.ts";
import { REPLACED } from "./tick.ts";

/** The admin API (CONTRACT: admin answers) and the page for an operator. */
export function createAdminServer(control: Control, guard: Guard, page: AdminPage): Server {
  return createServer((request, response) => {
    answer(control, guard, page, request, response).catch((error: unknown) => sendError(response, error));
  });
}

/** The page served at `/`, with the policy that lets a browser run nothing else. */
export interface AdminPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

async function answer(
  control: Control,
  guard: Guard,
  page: AdminPage,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = urlOf(request);
  const path = url.pathname;
  admit(request, path, guard);

  const engine = /^\/v1\/engines\/([^/]+)\/(drain|out)$/.exec(path);
  if (engine !== null) {
    decides(control, request);
    return setAdmin(control, engine[1]!, engine[2] === "drain" ? "draining" : "out", request, response);
  }
  switch (path) {
    case "/v1/snapshot":
      only(request, "GET");
      return serveSnapshot(control, clusterOf(control, url), url, request, response);
    case "/v1/feed":
      only(request, "GET");
      // The head of a feed says nothing, and its body never ends.
      if (request.method === "HEAD") throw new AdminError(405, "method_not_allowed", "HEAD is not offered here", "GET");
      return openFeed(control, clusterOf(control, url), response);
    case "/v1/engines":
      only(request, "GET");
      return sendJson(response, 200, engineAnswers(control));
    case "/v1/clusters":
      only(request, "GET");
      return sendJson(response, 200, clusterAnswers(control));
    case "/v1/explain":
      only(request, "GET");
      return serveExplain(control, url, response);
    case "/v1/diff":
      only(request, "GET");
      return serveDiff(control, url, response);
    case "/v1/what-if":
      only(request, "POST");
      return serveWhatIf(control, request, response);
    case "/v1/operator":
      only(request, "GET");
      return sendJson(response, 200, operatorAnswer(control));
    case "/v1/freeze":
      decides(control, request);
      return takeFreeze(control, request, response);
    case "/v1/rollback":
      decides(control, request);
      return takeRollback(control, request, response);
    case "/v1/pins":
      decides(control, request);
      return takePin(control, request, response);
    case "/v1/demand":
      only(request, "POST");
      return takeDemand(control, request, response);
    case "/metrics":
      only(request, "GET");
      response.writeHead(200, { "content-type": control.metrics.registry.contentType });
      response.end(await control.metrics.registry.metrics());
      return;
    case "/healthz":
      only(request, "GET");
      return sendJson(response, 200, { status: "ok" });
    case "/readyz":
      only(request, "GET");
      if (control.replaced) return sendJson(response, 503, { status: REPLACED });
      return control.published.current === null
        ? sendJson(response, 503, { status: "no snapshot yet" })
        : sendJson(response, 200, { status: "ok", version: control.published.current.version });
    case "/":
      only(request, "GET");
      response.writeHead(200, {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": page.contentSecurityPolicy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
      });
      response.end(page.html);
      return;
    default:
      throw new AdminError(404, "not_found", `no ${path} here`);
  }
}

/** The fleet's clusters with their live gateways; the page needs their names. */
function clusterAnswers({ fleet, levels, clock }: Control): { name: string; region: string; gateways: number }[] {
  return [...fleet.clusters.values()].map(({ name, region }) => ({
    name,
    region,
    gateways: levels.live(name, clock.nowMs()),
  }));
}

function openFeed(control: Control, cluster: string, response: ServerResponse): void {
  control.feed.open(cluster, response, control.presentState(cluster));
}

async function setAdmin(
  control: Control,
  id: string,
  word: "draining" | "out",
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const on = await readOn(request);
  const adminState = await setAdminState(control, id, word, on);
  if (adminState === null) throw noSuch("engine", id, control.fleet.engines);
  sendJson(response, 200, { id, adminState });
}

function clusterOf(control: Control, url: URL): string {
  const cluster = url.searchParams.get("cluster");
  if (cluster === null) throw new AdminError(400, "bad_request", "the query must name a cluster: ?cluster=NAME");
  if (!control.fleet.clusters.has(cluster)) throw noSuch("cluster", cluster, control.fleet.clusters);
  return cluster;
}

function noSuch(what: "cluster" | "engine", name: string, all: ReadonlyMap<string, unknown>): AdminError {
  const message = `no ${what} ${JSON.stringify(name)} in the fleet; ${knownNames(name, all.keys())}`;
  return new AdminError(404, `unknown_${what}`, message);
}

function urlOf(request: IncomingMessage): URL {
  const target = request.url ?? "/";
  // A target that begins with two slashes would be read as a host.
  if (target.startsWith("//") || !URL.canParse(target, "http://control"))
    throw new AdminError(400, "bad_request", `the target ${JSON.stringify(target)} is not a path`);
  return new URL(target, "http://control");
}

/** An operator's word, to which the next plan keeps: only where there will be one. */
function decides(control: Control, request: IncomingMessage): void {
  only(request, "POST");
  if (control.replaced) throw new AdminError(409, "replaced", REPLACED);
}

function only(request: IncomingMessage, method: "GET" | "POST"): void {
  const asked = request.method === "HEAD" ? "GET" : request.method;
  if (asked !== method)
    throw new AdminError(405, "method_not_allowed", `${request.method} is not offered here`, method);
}

import type { ServerResponse } from "node:http";
import type { Publication, StoredPublication } from "@guidevane/core";
import { AdminError, sendJson } from "./admin-http.ts";
import { operatorAnswer } from "./admin-operator.ts";
import type { Analysis } from "./analyst.ts";
import { planFigures } from "./cluster-figures.ts";
import type { Control } from "./control.ts";
import { storedVersion } from "./stored-version.ts";

/**
 * `GET /v1/explain?cluster=&class=&engine=`: why a cell's weights are what they are; without a cell, what the plan means
 * for every cluster. `version=` asks of an older publication.
 */
export async function serveExplain(control: Control, url: URL, response: ServerResponse): Promise<void> {
  const cluster = url.searchParams.get("cluster");
  const requestClass = url.searchParams.get("class");
  const engine = url.searchParams.get("engine");
  const { publication, version } = await planAsked(control, url.searchParams.get("version"));
  if (cluster === null && requestClass === null && engine === null) {
    const [snapshot] = publication.clusters.values();
    const { certificate } = snapshot ?? {};
    const head = { version, why: publication.why ?? null, published: version !== null, certificate };
    sendJson(response, 200, { ...head, ...planFigures(publication), operator: operatorAnswer(control) });
    return;
  }
  if (cluster === null || requestClass === null)
    throw new AdminError(400, "bad_request", "the query must name both a cluster and a class, or neither");
  const cell = { cluster, class: requestClass };
  const analysis = await control.analyst.explain(publication, cell, ...(engine === null ? [] : [engine]));
  const explanation = answerOf(analysis);
  sendJson(response, 200, { ...explanation, published: version !== null, operator: operatorAnswer(control) });
}

/** The answer of a question to the analyst. @throws AdminError 404 where it names what is not there; 503 where none came */
export function answerOf<Answer>(analysis: Analysis<Answer>): Answer {
  if (analysis.kind === "answer") return analysis.answer;
  if (analysis.kind === "refused") throw new AdminError(404, "unknown_name", analysis.message);
  throw new AdminError(503, "analysis_failed", `no answer: ${analysis.kind}: ${analysis.message}`);
}

/** A publication that is kept. @throws AdminError 400, 404 */
export async function keptVersion(control: Control, name: string, text: string): Promise<StoredPublication> {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new AdminError(400, "bad_request", `${name} must be a version, 1 or more (got ${JSON.stringify(text)})`);
  const version = Number(text);
  const present = control.published.current;
  if (present?.version === version) return present;
  return storedVersion(control, version);
}

/** The plan that is published; the advice where nothing is to be. `version` is null for advice. */
async function planAsked(
  control: Control,
  asked: string | null,
): Promise<{ publication: Publication; version: number | null }> {
  if (asked !== null) {
    const stored = await keptVersion(control, "version", asked);
    return { publication: stored, version: stored.version };
  }
  const { advice, advise, published } = control;
  if (advise && advice !== null) return { publication: advice, version: null };
  if (published.current === null) throw new AdminError(503, "no_snapshot", "nothing has been published yet");
  return { publication: published.current, version: published.current.version };
}

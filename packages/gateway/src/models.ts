import type { ServerResponse } from "node:http";
import type { ClusterSnapshot } from "@guidevane/core";

/** `GET /v1/models`: the models that some class of this cluster can be served with, in OpenAI's shape. */
export function modelsAnswer(
  response: ServerResponse,
  snapshot: ClusterSnapshot,
  headOnly: boolean,
  headers: Readonly<Record<string, string>>,
): void {
  const models = [...new Set(Object.values(snapshot.classes).map((each) => each.model))].sort();
  const created = Math.floor(Date.parse(snapshot.madeAt) / 1000) || 0;
  const data = models.map((id) => ({ id, object: "model", created, owned_by: "guidevane" }));
  const body = Buffer.from(JSON.stringify({ object: "list", data }));
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    "x-guidevane-snapshot": String(snapshot.version),
    ...headers,
  });
  response.end(headOnly ? undefined : body);
}

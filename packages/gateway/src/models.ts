import type { ServerResponse } from "node:http";
import type { ClusterSnapshot } from "@guidevane/core";
import type { Accepted } from "./accept.ts";
import { type AnswerManner, type ApiError, writeError } from "./api-error.ts";

type ModelsAsked = Extract<Accepted, { kind: "models" }>;

/**
 * `GET /v1/models` and `/v1/models/ID`: the models that classes of this cluster serve, and the aliases, in the shape that
 * the client's API has for them. Nothing is asked of an engine, so a dead one is not noticed.
 *
 * @returns the error that was answered; null = none
 */
export function modelsAnswer(
  response: ServerResponse,
  snapshot: ClusterSnapshot,
  asked: ModelsAsked,
  manner: AnswerManner,
): ApiError | null {
  const models = modelsOf(snapshot);
  const shape = asked.dialect === "anthropic" ? anthropicModel : openaiModel;
  let answer: unknown;
  if (asked.model === null) {
    const data = models.map(shape);
    answer =
      asked.dialect === "anthropic"
        ? { data, has_more: false, first_id: models[0]?.id ?? null, last_id: models.at(-1)?.id ?? null }
        : { object: "list", data };
  } else {
    const model = models.find(({ id }) => id === asked.model);
    if (model === undefined) {
      const error = unknownModel(asked.model);
      writeError(response, error, manner);
      return error;
    }
    answer = shape(model);
  }
  const body = Buffer.from(JSON.stringify(answer));
  response.writeHead(200, [
    ...["content-type", "application/json", "content-length", String(body.length)],
    ...["x-request-id", manner.requestId, "x-guidevane-snapshot", String(snapshot.version)],
    ...(manner.headers ?? []),
  ]);
  response.end(asked.head ? undefined : body);
  return null;
}

/** What is said of a model that nobody serves. */
export function unknownModel(name: string): ApiError {
  const shown = name.length > SHOWN_CHARACTERS ? `${name.slice(0, SHOWN_CHARACTERS)}…` : name;
  return {
    status: 404,
    code: "model_not_found",
    message: `the model ${JSON.stringify(shown)} does not exist here`,
    param: "model",
  };
}

const SHOWN_CHARACTERS = 100;

interface Model {
  readonly id: string;
  /** What an alias stands for; null for a model itself. */
  readonly root: string | null;
  readonly madeAt: string;
}

function modelsOf({ classes, aliases = {}, madeAt }: ClusterSnapshot): Model[] {
  const names = new Set(Object.values(classes).map(({ model }) => model));
  const own = [...names].map((id) => ({ id, root: null, madeAt }));
  const others = Object.entries(aliases).map(([id, root]) => ({ id, root, madeAt }));
  return [...own, ...others].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function openaiModel({ id, root, madeAt }: Model): unknown {
  const created = Math.floor(Date.parse(madeAt) / 1000) || 0;
  return { id, object: "model", created, owned_by: "guidevane", ...(root === null ? {} : { root }) };
}

function anthropicModel({ id, madeAt }: Model): unknown {
  return { type: "model", id, display_name: id, created_at: madeAt };
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { answerOf, keptVersion } from "./admin-explain.ts";
import { AdminError, readJson, sendJson } from "./admin-http.ts";
import type { Control } from "./control.ts";
import { loadInputs } from "./tick.ts";
import { parseWhatIf } from "./what-if-order.ts";

/** `GET /v1/diff?from=&to=`: what changed between two versions that are kept, and how much of each move it explains. */
export async function serveDiff(control: Control, url: URL, response: ServerResponse): Promise<void> {
  const [from, to] = ["from", "to"].map((name) => url.searchParams.get(name));
  if (from === null || from === undefined || to === null || to === undefined)
    throw new AdminError(400, "bad_request", "the query must name two versions: ?from=V1&to=V2");
  const before = await keptVersion(control, "from", from);
  const after = await keptVersion(control, "to", to);
  sendJson(response, 200, answerOf(await control.analyst.diff(before, after)));
}

/** `POST /v1/what-if {"changes": […]}`: what the next plan would be if that happened. Publishes nothing. */
export async function serveWhatIf(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const changes = parseWhatIf(await readJson(request), control.fleet);
  const previous = control.published.current;
  const inputs = loadInputs(control, previous);
  sendJson(response, 200, answerOf(await control.analyst.whatIf(inputs, changes, previous)));
}

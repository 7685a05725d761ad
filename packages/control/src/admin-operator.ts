import type { IncomingMessage, ServerResponse } from "node:http";
import type { OperatorState, Pin } from "@guidevane/core";
import { AdminError, readJson, sendJson } from "./admin-http.ts";
import type { Control } from "./control.ts";
import { activePins, freeze, rollBack, setPin } from "./operator-hand.ts";
import { parsePin } from "./pin.ts";

/** What an operator has said, as `GET /v1/operator` shows it. */
export interface OperatorAnswer {
  /** Engines not simply active by the operator's word. */
  readonly engines: OperatorState["engines"];
  readonly frozen: boolean;
  /** The version whose weights are published again; null where none is. */
  readonly rolledBackTo: number | null;
  readonly pins: readonly Pin[];
  /** This control plane publishes nothing. */
  readonly advise: boolean;
  /** Published now; null before the first. */
  readonly version: number | null;
  /** The published weights on the demand of the last tick: how far from the optimum they are at most; null before it. */
  readonly certified: {
    readonly at: string;
    /** ms per request, and as a part of the cost; null where the last tick could not certify them. */
    readonly gapMs: number | null;
    readonly gap: number | null;
    /** Why a plan was made; empty where the weights were good enough. */
    readonly why: string;
  } | null;
}

export function operatorAnswer(control: Control): OperatorAnswer {
  const { engines, frozen, rolledBackTo } = control.operator.state;
  return {
    engines,
    frozen: frozen === true,
    rolledBackTo: rolledBackTo ?? null,
    pins: activePins(control),
    advise: control.advise,
    version: control.published.current?.version ?? null,
    certified: certifiedAnswer(control),
  };
}

function certifiedAnswer({ certified }: Control): OperatorAnswer["certified"] {
  if (certified === null) return null;
  const { certificate, why } = certified.gate;
  const { gapMs = null, gap = null } = certificate ?? {};
  return { at: new Date(certified.wallMs).toISOString(), gapMs, gap, why };
}

/** `POST /v1/freeze {"on"}` */
export async function takeFreeze(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await freeze(control, await readOn(request));
  sendJson(response, 200, operatorAnswer(control));
}

/** `POST /v1/rollback {"version"}` */
export async function takeRollback(
  control: Control,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const version = fieldOf(await readJson(request), "version");
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
    throw new AdminError(400, "bad_request", `version must be a whole number above 0 (got ${JSON.stringify(version)})`);
  await rollBack(control, version);
  sendJson(response, 200, operatorAnswer(control));
}

/** `POST /v1/pins {"cluster", "class", "weights", "until"}`; `"weights": null` lifts the pin. */
export async function takePin(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const data = await readJson(request);
  await setPin(control, parsePin(data, control.fleet, control.engineStates(), control.clock.wallMs()));
  sendJson(response, 200, operatorAnswer(control));
}

/** The body `{"on": true}` or `{"on": false}`. @throws AdminError 400 */
export async function readOn(request: IncomingMessage): Promise<boolean> {
  const on = fieldOf(await readJson(request), "on");
  if (typeof on !== "boolean")
    throw new AdminError(400, "bad_request", 'the body must be {"on": true} or {"on": false}');
  return on;
}

function fieldOf(data: unknown, name: string): unknown {
  return typeof data === "object" && data !== null ? (data as Record<string, unknown>)[name] : undefined;
}

import { type Fleet, ineligibleFor, knownNames, type Pin, problem, rttMsOf, showProblem } from "@guidevane/core";
import { z } from "zod";
import { AdminError } from "./admin-http.ts";
import type { EngineState } from "./engine-state.ts";

/** What `POST /v1/pins` takes; `weights: null` lifts the cell's pin. */
const pinSchema = z.strictObject({
  cluster: z.string(),
  class: z.string(),
  weights: z.record(z.string(), z.number().min(0).max(1)).nullable(),
  until: z.iso.datetime({ offset: true }).optional(),
});

export interface PinOrder {
  readonly cluster: string;
  readonly requestClass: string;
  /** null = the cell's pin is lifted. */
  readonly pin: Pin | null;
}

/** Weights are decimals that a person wrote. */
const WEIGHT_TOLERANCE = 1e-6;

/**
 * An operator's pin, checked against the fleet as it is.
 *
 * @throws AdminError 400 `bad_pin`, naming the field and its value
 */
export function parsePin(
  data: unknown,
  fleet: Fleet,
  states: ReadonlyMap<string, EngineState>,
  wallMs: number,
): PinOrder {
  const parsed = pinSchema.safeParse(data);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new AdminError(400, "bad_pin", `${issue!.path.join(".") || "(top level)"}: ${issue!.message}`);
  }
  const { cluster, class: requestClass, weights, until } = parsed.data;
  const place = fleet.clusters.get(cluster) ?? refuseName("cluster", "cluster", cluster, fleet.clusters);
  const spec = fleet.classes.get(requestClass) ?? refuseName("class", "class", requestClass, fleet.classes);
  if (weights === null) return { cluster, requestClass, pin: null };
  if (until === undefined) refuse("until", undefined, "is required: the instant at which the pin ends");
  const untilMs = Date.parse(until);
  if (untilMs <= wallMs) refuse("until", until, `is not after now, ${new Date(wallMs).toISOString()}`);
  let sum = 0;
  for (const [id, weight] of Object.entries(weights)) {
    const engine = fleet.engines.get(id) ?? refuseName(`weights.${id}`, "engine", id, fleet.engines);
    const ineligible = ineligibleFor(spec, engine, rttMsOf(fleet, place, engine));
    if (ineligible !== null) refuse(`weights.${id}`, weight, `may not serve ${requestClass}: ${ineligible.message}`);
    const adminState = states.get(id)?.adminState ?? engine.adminState;
    if (weight > 0 && adminState !== "active") refuse(`weights.${id}`, weight, `is ${adminState}`);
    sum += weight;
  }
  if (!(Math.abs(sum - 1) <= WEIGHT_TOLERANCE)) refuse("weights", sum, "must sum to 1");
  return {
    cluster,
    requestClass,
    pin: { cluster, class: requestClass, weights, until: new Date(untilMs).toISOString() },
  };
}

function refuse(path: string, value: unknown, message: string): never {
  throw new AdminError(400, "bad_pin", showProblem(problem("invalid_value", path, value, message)));
}

function refuseName(
  path: string,
  what: "cluster" | "class" | "engine",
  name: string,
  all: ReadonlyMap<string, unknown>,
) {
  const article = what === "engine" ? "an" : "a";
  return refuse(path, name, `is not ${article} ${what} of the fleet file; ${knownNames(name, all.keys())}`);
}

/** Splits pins at an instant. Pins have a wall-clock end, since a person wrote it and it must outlive a restart. */
export function splitPins(pins: readonly Pin[], wallMs: number): { active: Pin[]; expired: Pin[] } {
  const active = pins.filter(({ until }) => Date.parse(until) > wallMs);
  return { active, expired: pins.filter((pin) => !active.includes(pin)) };
}

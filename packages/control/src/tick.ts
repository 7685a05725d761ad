import { GuidevaneError, isNewer, type Publication, type StoredPublication } from "@guidevane/core";
import type { Plan, PlanInputs } from "@guidevane/optimizer";
import type { Control } from "./control.ts";
import { demandOf } from "./demand.ts";
import type { PublishResult } from "./metrics.ts";
import { activePins } from "./operator-hand.ts";
import { keysMoved } from "./published.ts";

/**
 * The weight path, once: load what is known, solve for the weights, verify the answer, publish it. Whatever fails, the
 * last good publication stays the one that is served.
 */
export async function tick(control: Control): Promise<TickResult> {
  if (control.advise) {
    const unread = await follow(control);
    if (unread !== null) return unread;
  }
  const previous = control.published.current;
  const inputs = loadInputs(control, previous);
  control.metrics.demand(inputs.demandRps);

  const outcome = await control.solver.solve(inputs, previous, control.warm, control.fleet.policy.solveMs);
  if (outcome.kind !== "plan") return failed("solve-failed", outcome.kind, `the solve failed: ${outcome.message}`);
  const { plan } = outcome;
  control.warm = plan.warm;
  if (plan.status === "held") return { kind: "unmoved", plan };
  control.metrics.solveSeconds.observe({ solver: plan.solver }, plan.solveMs / 1000);
  if (plan.publication === null) return failed("solve-failed", plan.status, `no plan: ${plan.status}: ${plan.message}`);

  const verified = await control.solver.verify(plan.publication);
  if (verified.kind !== "faults")
    return failed("verify-failed", verified.kind, `the plan could not be verified: ${verified.message}`);
  const { faults } = verified;
  if (faults.length > 0)
    return failed("verify-failed", "refused", `the plan was refused: ${faults.slice(0, 3).join("; ")}`);

  return control.writing(() => put(control, plan, plan.publication!, previous));
}

/** Publishes what was planned, unless an operator has said otherwise since the tick began. */
async function put(
  control: Control,
  plan: Plan,
  publication: Publication,
  previous: StoredPublication | null,
): Promise<TickResult> {
  if (control.stopped) return failed("store-failed", "stopped", "stopped before it could publish");
  const held = control.heldBecause;
  if (held !== null) return { kind: "held", why: held, plan, publication };
  try {
    const stored = await control.store.put(publication, previous?.version ?? 0);
    control.metrics.published(stored, previous === null ? null : keysMoved(previous, stored));
    await control.published.replace(stored);
    return { kind: "published", stored, plan };
  } catch (error) {
    return await putFailed(control, error);
  }
}

export type TickResult =
  | { readonly kind: "published"; readonly stored: StoredPublication; readonly plan: Plan }
  /** The present weights are as good as need be for what is asked now: nothing is published, nothing moves. */
  | { readonly kind: "unmoved"; readonly plan: Plan }
  /** Solved and verified, and not published: an operator froze the fleet, or asked for advice only. */
  | { readonly kind: "held"; readonly why: HeldBecause; readonly plan: Plan; readonly publication: Publication }
  | {
      readonly kind: "failed";
      readonly result: Exclude<PublishResult, "published" | "held" | HeldBecause>;
      /** The same while the cause is. */
      readonly cause: string;
      readonly message: string;
    };

export type HeldBecause = "frozen" | "advise";

/** Everything that the plan may depend on, gathered at one instant. */
export function loadInputs(control: Control, previous: StoredPublication | null): PlanInputs {
  const { fleet, clock, levels } = control;
  const nowMs = clock.nowMs();
  const demand = demandOf(fleet, levels, previous, nowMs);
  return {
    wallMs: clock.wallMs(),
    fleet,
    demandRps: new Map([...demand].map(([key, { rps }]) => [key, rps])),
    demandDeviationRps: new Map([...demand].map(([key, { deviationRps }]) => [key, deviationRps])),
    engines: new Map(
      [...control.engineStates()].map(([id, { readyReplicas, severity, adminState }]) => [
        id,
        { readyReplicas, severity, adminState },
      ]),
    ),
    pins: activePins(control),
    gateways: new Map([...fleet.clusters.keys()].map((cluster) => [cluster, levels.live(cluster, nowMs)])),
  };
}

/** Advice is on what another control plane, writing to the same store, publishes. */
async function follow(control: Control): Promise<TickResult | null> {
  try {
    const theirs = await control.store.get();
    const present = control.published.current;
    if (theirs !== null && (present === null || isNewer(theirs, present))) await control.published.replace(theirs);
    return null;
  } catch (error) {
    return failed("store-failed", "get", `the store can't be read: ${String(error)}`);
  }
}

/** What a control plane that was replaced says to whoever reads its log or asks it for something. */
export const REPLACED =
  "another control plane has taken this store over: this one publishes nothing until it is restarted";

/** After a conflict the other writer's publication is the present one: it is served, and the next tick builds on it. */
async function putFailed(control: Control, error: unknown): Promise<TickResult> {
  const message = error instanceof Error ? error.message : String(error);
  const code = GuidevaneError.is(error) ? error.code : null;
  if (code !== "store_conflict" && code !== "store_replaced")
    return failed("store-failed", "put", `the store refused the publication: ${message}`);
  control.metrics.leader.set(0);
  control.replaced ||= code === "store_replaced";
  try {
    const theirs = await control.store.get();
    if (theirs !== null) await control.published.replace(theirs);
  } catch (readError) {
    return failed("store-failed", "get", `the store can't be read: ${String(readError)}`);
  }
  return control.replaced
    ? failed("store-conflict", "replaced", `${REPLACED}; ${message}`)
    : failed("store-conflict", "conflict", message);
}

function failed(
  result: Exclude<PublishResult, "published" | "held" | HeldBecause>,
  cause: string,
  message: string,
): TickResult {
  return { kind: "failed", result, cause, message };
}

import type { AdminState, EngineSpec, HealthState, OperatorState } from "@guidevane/core";
import type { EngineEvidence } from "@guidevane/signals";
import type { Observation } from "./collect.ts";

/** All that the control plane holds of one engine at one time: probes, signals, gateways and the operator together. */
export interface EngineState {
  readonly id: string;
  readonly health: HealthState;
  readonly healthReason: string;
  /** Since the probes' verdict last changed, by the clock's `nowMs`. */
  readonly healthSinceMs: number;
  readonly adminState: AdminState;
  /** What the plan may count on: 0 where it is dead. */
  readonly readyReplicas: number;
  /** 0..1, from the gateways' failing factors. */
  readonly severity: number;
  readonly evidence: EngineEvidence;
  readonly observation: Observation;
}

export function engineState(
  engine: EngineSpec,
  observation: Observation,
  evidence: EngineEvidence,
  operator: OperatorState,
): EngineState {
  const { probed, signals } = observation;
  const adminState = operator.engines[engine.id] ?? engine.adminState;
  const alive = aliveness(observation, evidence);
  const { value, state } = signals.readyReplicas;
  // A zero that nobody repeats must not keep an engine out for ever: once stale, the probe alone decides.
  const counted = value !== null && (state === "fresh" || value > 0) ? value : engine.replicas;
  const readyReplicas = alive.dead ? 0 : counted;
  return {
    id: engine.id,
    ...shown(engine, adminState, alive, observation, readyReplicas),
    healthSinceMs: probed.sinceMs,
    adminState,
    readyReplicas,
    severity: evidence.severity,
    evidence,
    observation,
  };
}

/**
 * Dead or not. An engine that only the control plane can't reach lives while a gateway has answers from it; one that the
 * control plane has no probe for is dead when gateways say so and none has answers.
 */
function aliveness({ probed }: Observation, evidence: EngineEvidence): { dead: boolean; reason: string } {
  if (probed.health === "dead") {
    if (evidence.successes === 0) return { dead: true, reason: probed.reason };
    return { dead: false, reason: `${probed.reason} from here, ${evidence.successes} gateways reach it` };
  }
  if (probed.health === "unknown" && evidence.dead > 0 && evidence.successes === 0)
    return { dead: true, reason: `${evidence.dead} gateways call it dead` };
  return { dead: false, reason: probed.reason };
}

function shown(
  engine: EngineSpec,
  adminState: AdminState,
  alive: { readonly dead: boolean; readonly reason: string },
  observation: Observation,
  readyReplicas: number,
): { health: HealthState; healthReason: string } {
  if (adminState === "out") return { health: "out", healthReason: "taken out by the operator" };
  if (alive.dead) return { health: "dead", healthReason: alive.reason };
  if (adminState === "draining") return { health: "draining", healthReason: "draining" };
  if (readyReplicas === 0) return { health: "not-ready", healthReason: `0 of ${engine.replicas} replicas ready` };
  const health = observation.probed.health === "ready" ? "ready" : "unknown";
  return { health, healthReason: alive.reason };
}

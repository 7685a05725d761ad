import type { AdminState, EngineSpec, Fleet, HealthState, OperatorState } from "@guidevane/core";
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
  /** Taken as alive although it can't be reached from here, since no engine of its model can. */
  readonly failOpen: boolean;
  /** 0..1, from the gateways' failing factors. */
  readonly severity: number;
  readonly evidence: EngineEvidence;
  readonly observation: Observation;
}

export interface EngineSources {
  readonly operator: OperatorState;
  observation(id: string): Observation;
  evidence(id: string): EngineEvidence;
}

/**
 * The state of every engine of the fleet.
 *
 * Where every engine of a model is dead by the control plane's own probes alone, it is more likely that the control plane
 * is cut off than that all died at once; planning for none would make gateways shed everything they could serve. Such
 * engines are counted as they are configured until a gateway calls one dead.
 */
export function engineStates(fleet: Fleet, sources: EngineSources): ReadonlyMap<string, EngineState> {
  const known = new Map(
    [...fleet.engines.keys()].map((id) => {
      const observation = sources.observation(id);
      const evidence = sources.evidence(id);
      return [id, { observation, evidence, verdict: verdictOf(observation, evidence) }];
    }),
  );
  const models = new Set([...fleet.engines.values()].flatMap((engine) => engine.models));
  const cutOff = new Set(
    [...models].filter((model) =>
      [...fleet.engines.values()]
        .filter((engine) => engine.models.includes(model))
        .every(({ id }) => known.get(id)!.verdict.kind === "dead-alone"),
    ),
  );
  return new Map(
    [...fleet.engines.values()].map((engine) => {
      const { observation, evidence, verdict } = known.get(engine.id)!;
      const failOpen = verdict.kind === "dead-alone" && engine.models.some((model) => cutOff.has(model));
      const taken: Verdict = failOpen
        ? { kind: "alive", reason: `${verdict.reason} from here, as is every engine of its model: taken as alive` }
        : verdict;
      const adminState = adminStateOf(engine, sources.operator);
      return [engine.id, { ...engineState(engine, adminState, taken, observation, evidence), failOpen }];
    }),
  );
}

/** The operator's word on an engine, else the fleet file's. */
export function adminStateOf(engine: EngineSpec, { engines }: OperatorState): AdminState {
  // An engine may be called like a part of every object.
  return Object.hasOwn(engines, engine.id) ? engines[engine.id]! : engine.adminState;
}

/** `dead-alone`: by this control plane's probes, with no gateway to confirm it. */
interface Verdict {
  readonly kind: "alive" | "dead" | "dead-alone";
  readonly reason: string;
}

/**
 * An engine that only the control plane can't reach lives while a gateway has answers from it; one that the control plane
 * has no probe for is dead when gateways say so and none has answers.
 */
function verdictOf({ probed }: Observation, evidence: EngineEvidence): Verdict {
  const { dead, successes, lateSuccesses } = evidence;
  if (probed.health === "dead") {
    const reached = dead > 0 ? successes : lateSuccesses;
    if (reached > 0) return { kind: "alive", reason: `${probed.reason} from here, but gateways reach it` };
    return { kind: dead > 0 ? "dead" : "dead-alone", reason: probed.reason };
  }
  if (probed.health === "unknown" && dead > 0 && successes === 0)
    return { kind: "dead", reason: `${dead} gateways call it dead` };
  return { kind: "alive", reason: probed.reason };
}

function engineState(
  engine: EngineSpec,
  adminState: AdminState,
  verdict: Verdict,
  observation: Observation,
  evidence: EngineEvidence,
): Omit<EngineState, "failOpen"> {
  const { value, state } = observation.signals.readyReplicas;
  // A zero that nobody repeats must not keep an engine out for ever: once stale, the probe alone decides.
  const counted = value !== null && (state === "fresh" || value > 0) ? value : engine.replicas;
  const readyReplicas = verdict.kind === "alive" ? counted : 0;
  return {
    id: engine.id,
    ...shown(engine, adminState, verdict, observation, readyReplicas),
    healthSinceMs: observation.probed.sinceMs,
    adminState,
    readyReplicas,
    severity: evidence.severity,
    evidence,
    observation,
  };
}

function shown(
  engine: EngineSpec,
  adminState: AdminState,
  verdict: Verdict,
  { probed }: Observation,
  readyReplicas: number,
): { health: HealthState; healthReason: string } {
  if (adminState === "out") return { health: "out", healthReason: "taken out by the operator" };
  if (verdict.kind !== "alive") return { health: "dead", healthReason: verdict.reason };
  if (adminState === "draining") return { health: "draining", healthReason: "draining" };
  if (readyReplicas === 0) return { health: "not-ready", healthReason: `0 of ${engine.replicas} replicas ready` };
  return { health: probed.health === "ready" ? "ready" : "unknown", healthReason: verdict.reason };
}

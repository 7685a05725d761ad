import type { EngineSignals, HealthState } from "@guidevane/core";
import type { Observation } from "./collect.ts";
import type { Control } from "./control.ts";

/** One engine as `GET /v1/engines` shows it. */
export interface EngineAnswer {
  readonly id: string;
  readonly health: HealthState;
  readonly healthReason: string;
  /** Since the probes' verdict last changed. */
  readonly healthAgeMs: number;
  /** By cluster, then class: what the published ring gives. */
  readonly share: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Requests that the engine says it holds, running and waiting; null where it does not say. */
  readonly inFlight: number | null;
  /** 1 − severity of the gateways' reports, and what is behind it; null evidence = no report tried or penalises it. */
  readonly penalty: {
    readonly factor: number;
    readonly evidence: {
      readonly attempts: number;
      readonly faults: number;
      readonly gateways: number;
      /** Least of the gateways' factors for slowness. */
      readonly slowFactor: number;
    } | null;
  };
  readonly signals: EngineSignals;
  /** Per second over the last 30 s; null where too little is known. */
  readonly rates: Observation["rates"];
}

export function engineAnswers(control: Control): EngineAnswer[] {
  const nowMs = control.clock.nowMs();
  return [...control.engineStates().values()].map((state) => {
    const { evidence, observation } = state;
    const { running, waiting } = observation.signals;
    return {
      id: state.id,
      health: state.health,
      healthReason: state.healthReason,
      healthAgeMs: Math.round(nowMs - state.healthSinceMs),
      share: control.published.shares.get(state.id) ?? {},
      inFlight: running.value === null || waiting.value === null ? null : running.value + waiting.value,
      penalty: {
        factor: 1 - state.severity,
        evidence:
          evidence.attempts === 0 && evidence.severity === 0 && evidence.slowFactor === 1
            ? null
            : {
                attempts: evidence.attempts,
                faults: evidence.faults,
                gateways: evidence.gateways,
                slowFactor: evidence.slowFactor,
              },
      },
      signals: observation.signals,
      rates: observation.rates,
    };
  });
}

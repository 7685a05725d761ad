import { GuidevaneError } from "@guidevane/core";
import type { LabFleet } from "./lab-fleet.ts";
import type { Failure } from "./lab-options.ts";

/** One thing done to the fleet at one moment. */
export type FailureStep =
  | { readonly atMs: number; readonly does: "die" | "return" | "forget"; readonly engine: number }
  | { readonly atMs: number; readonly does: "slow"; readonly engine: number; readonly factor: number }
  | { readonly atMs: number; readonly does: "control"; readonly up: boolean };

/**
 * Failures as single steps.
 *
 * @throws GuidevaneError `bad_usage` for an engine or a region that the fleet does not have
 */
export function failureSteps(failures: readonly Failure[], fleet: LabFleet): FailureStep[] {
  return failures.flatMap((failure) => stepsOf(failure, fleet));
}

function stepsOf(failure: Failure, fleet: LabFleet): FailureStep[] {
  const { atMs } = failure;
  const dead = (engine: number, fromMs: number, toMs: number): FailureStep[] => [
    { atMs: fromMs, does: "die", engine },
    { atMs: toMs, does: "return", engine },
  ];
  switch (failure.kind) {
    case "death":
      return dead(engineAt(fleet, failure.engine), atMs, atMs + failure.forMs);
    case "region": {
      const engines = fleet.engines.flatMap(({ region }, engine) => (region === failure.region ? [engine] : []));
      if (engines.length === 0)
        throw new GuidevaneError("bad_usage", `failure: no engine is in region ${failure.region}`);
      return engines.flatMap((engine) => dead(engine, atMs, atMs + failure.forMs));
    }
    case "flapping": {
      const engine = engineAt(fleet, failure.engine);
      const steps: FailureStep[] = [];
      for (let fromMs = atMs; fromMs < atMs + failure.forMs; fromMs += failure.periodMs)
        steps.push(...dead(engine, fromMs, fromMs + failure.periodMs / 2));
      return steps;
    }
    case "slowdown": {
      const engine = engineAt(fleet, failure.engine);
      return [
        { atMs, does: "slow", engine, factor: failure.factor },
        { atMs: atMs + failure.forMs, does: "slow", engine, factor: 1 },
      ];
    }
    case "cold-cache": {
      const engines = failure.engine === undefined ? fleet.engines.keys() : [engineAt(fleet, failure.engine)];
      return [...engines].map((engine) => ({ atMs, does: "forget", engine }));
    }
    case "control-down":
      return [
        { atMs, does: "control", up: false },
        { atMs: atMs + failure.forMs, does: "control", up: true },
      ];
  }
}

function engineAt(fleet: LabFleet, id: string): number {
  const at = fleet.engines.findIndex((engine) => engine.id === id);
  if (at < 0) throw new GuidevaneError("bad_usage", `failure: the fleet has no engine ${id}`);
  return at;
}

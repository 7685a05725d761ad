import type { PolicyDefinition, PolicyWorld } from "../policy.ts";
import { weightedPolicy } from "../weighted-rings.ts";

/**
 * The proportional controller on latency: smooth what engines report, compare each with the fleet's mean, and nudge its
 * weight the other way, w ← w·(1 + gain·(mean − own) ÷ mean), on what was seen `delay` rounds ago.
 */
export const controller: PolicyDefinition = {
  name: "controller",
  does: "nudges weights towards engines whose smoothed latency is below the mean, by a gain, after a delay",
  grid: { gain: [0.2, 0.01, 0.02, 0.05, 0.5], delay: [0, 1, 3], smoothing: [0.5, 1] },
  create(world, { gain, delay, smoothing }) {
    const { fleet } = world;
    const weights = fleet.eligible.map((engines) => startWeights(world, engines));
    const smoothed = new Float64Array(fleet.engines.length);
    const history: Float64Array[] = [];
    return weightedPolicy(world, () => {
      for (const [engine, latencyMs] of world.signals.latencyMs.entries()) {
        if (latencyMs > 0)
          smoothed[engine] =
            smoothed[engine] === 0 ? latencyMs : smoothed[engine]! + smoothing! * (latencyMs - smoothed[engine]!);
      }
      history.push(smoothed.slice());
      const seen = history[history.length - 1 - delay!];
      if (history.length > delay! + 1) history.shift();
      if (seen !== undefined)
        for (const [cell, engines] of fleet.eligible.entries())
          nudge(world, cell, engines, weights[cell]!, seen, gain!);
      return (cell, engine) => (world.readyReplicas(engine) > 0 ? weights[cell]![engine]! : 0);
    });
  },
};

function startWeights({ fleet }: PolicyWorld, engines: Uint16Array): Float64Array {
  const weights = new Float64Array(fleet.engines.length);
  const sum = engines.reduce((total, engine) => total + fleet.capacityWps[engine]!, 0);
  for (const engine of engines) weights[engine] = fleet.capacityWps[engine]! / sum;
  return weights;
}

function nudge(
  { fleet }: PolicyWorld,
  cell: number,
  engines: Uint16Array,
  weights: Float64Array,
  latencyMs: Float64Array,
  gain: number,
): void {
  const from = (cell % fleet.clusters.length) * fleet.engines.length;
  const known = engines.filter((engine) => latencyMs[engine]! > 0);
  const scoreOf = (engine: number): number => latencyMs[engine]! + fleet.rttMs[from + engine]!;
  const held = known.reduce((sum, engine) => sum + weights[engine]!, 0);
  const mean = known.reduce((sum, engine) => sum + weights[engine]! * scoreOf(engine), 0) / held;
  if (!(mean > 0)) return;
  for (const engine of known)
    weights[engine] = Math.max(LEAST, weights[engine]! * Math.max(0.1, 1 + (gain * (mean - scoreOf(engine))) / mean));
  const sum = engines.reduce((total, engine) => total + weights[engine]!, 0);
  for (const engine of engines) weights[engine]! /= sum;
}

/** An engine without traffic reports no latency, and would never come back. */
const LEAST = 0.002;

import { idleMs, valueAt } from "@guidevane/core";
import type { PolicyDefinition, PolicyWorld } from "../policy.ts";
import { weightedPolicy } from "../weighted-rings.ts";

/**
 * Weights at which no request would be faster elsewhere: all engines that a cell uses have the same expected latency
 * (Wardrop's user equilibrium), by the same profiles that the optimum is made from. What a selfish router tends to.
 */
export const equalLatency: PolicyDefinition = {
  name: "equal-latency",
  does: "solves the same model for equal latencies instead of the least mean",
  grid: {},
  create: (world) => {
    let flows: Float64Array[] | null = null;
    return weightedPolicy(world, () => {
      flows = equilibrium(world, flows);
      const solved = flows;
      return (cell, engine) => solved[cell]![engine]!;
    });
  },
};

/**
 * By the projected dynamics that have it as their rest point: each cell moves work from its slowest used engine to its
 * fastest, by steps that shrink.
 */
function equilibrium(world: PolicyWorld, start: Float64Array[] | null): Float64Array[] {
  const { fleet } = world;
  const { engines, clusters, classes } = fleet;
  const live = Float64Array.from(
    engines,
    ({ replicas }, e) => (fleet.capacityWps[e]! * world.readyReplicas(e)) / replicas,
  );
  const load = new Float64Array(engines.length);
  const flows = fleet.eligible.map((list, cell) => {
    const demandWps = world.demandRps(cell) * classes[Math.floor(cell / clusters.length)]!.work;
    const flow = new Float64Array(engines.length);
    const before = start?.[cell];
    const weightOf = (e: number): number => (live[e] === 0 ? 0 : (before?.[e] ?? 0) + 1e-6 * live[e]!);
    const sum = list.reduce((total, e) => total + weightOf(e), 0);
    for (const e of list) {
      flow[e] = sum > 0 ? (demandWps * weightOf(e)) / sum : 0;
      load[e]! += flow[e]!;
    }
    return flow;
  });
  for (let round = 0; round < ROUNDS; round++) {
    const step = FIRST_STEP / (1 + round / 20);
    for (const [cell, list] of fleet.eligible.entries()) {
      const spec = classes[Math.floor(cell / clusters.length)]!;
      const rttFrom = (cell % clusters.length) * engines.length;
      const latency = (e: number): number => {
        const profile = fleet.profiles[e]!;
        // Beyond its capacity an engine is no choice at all, but how far beyond must still be told apart.
        const rho = load[e]! / live[e]!;
        const beyondMs = Math.max(0, rho - 1) * BEYOND_MS;
        const addedMs =
          valueAt(profile.ttftMs, rho) -
          valueAt(profile.ttftMs, 0) +
          spec.outputTokens * (valueAt(profile.tbotMs, rho) - valueAt(profile.tbotMs, 0));
        return fleet.rttMs[rttFrom + e]! + idleMs(profile, spec) + addedMs + beyondMs;
      };
      const flow = flows[cell]!;
      let slow = -1;
      let fast = -1;
      let slowMs = Number.NEGATIVE_INFINITY;
      let fastMs = Number.POSITIVE_INFINITY;
      for (const e of list) {
        if (live[e] === 0) continue;
        const ms = latency(e);
        if (ms < fastMs) [fast, fastMs] = [e, ms];
        if (flow[e]! > 0 && ms > slowMs) [slow, slowMs] = [e, ms];
      }
      if (slow < 0 || fast < 0 || slow === fast) continue;
      const moved = Math.min(
        flow[slow]!,
        step * Math.min(live[slow]!, live[fast]!) * Math.min(1, ((slowMs - fastMs) / slowMs) * 4),
      );
      flow[slow]! -= moved;
      flow[fast]! += moved;
      load[slow]! -= moved;
      load[fast]! += moved;
    }
  }
  return flows;
}

const ROUNDS = 600;
const FIRST_STEP = 0.2;
const BEYOND_MS = 1e6;

import { ManualClock, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { twoRegions } from "../lab.fixture.ts";
import { labFleet } from "../lab-fleet.ts";
import type { PolicyWorld } from "../policy.ts";
import { signalBoard } from "../signal-board.ts";
import { workloadOf } from "../workload.ts";
import { controller } from "./controller.ts";

/**
 * Two equal engines whose latency grows with a power of their load, latency ∝ weight^elasticity, at no distance: then a
 * relative error x of a weight goes on by x(t+1) = x(t) − gain·elasticity·x(t − d), which dies out below
 * gain·elasticity = 2 sin(π ÷ (2(2d + 1))) and grows above it.
 */
async function twins(elasticity: number, gain: number, delay: number): Promise<number[]> {
  const file = await twoRegions;
  const engines = new Map([...file.engines].filter(([id]) => id !== "west-2"));
  const network = { defaultRttMs: 0, rttMs: new Map() };
  const fleet = labFleet({ ...file, engines, network });
  const facts = { name: "none", assumptions: [], settleMs: 0, clusters: ["east"], classes: ["chat"], blockTokens: 256 };
  const signals = signalBoard(2);
  let weight = 0.5;
  const world: PolicyWorld = {
    fleet,
    workload: workloadOf(facts, []),
    places: { cluster: [0], class: [0] },
    keyHash: new Uint32Array(1),
    clock: new ManualClock(),
    random: seededRandom(1),
    cachedBlocks: () => 0,
    gatewayCluster: Uint16Array.of(0),
    inFlight: new Uint32Array(2),
    health: Float64Array.of(1, 1),
    healthChanges: new Uint32Array(1),
    clientAttempts: new Uint8Array(0),
    severity: () => 0,
    signals,
    demandRps: () => 1,
    demandDeviationRps: () => 0,
    readyReplicas: () => 1,
    liveGateways: () => 1,
    deliver: () => {},
    published: (cell, weights) => {
      if (cell === 0) weight = weights[0]!;
    },
  };
  const policy = controller.create(world, { gain, delay, smoothing: 1 });
  const errors: number[] = [];
  for (let tick = 0; tick < 600; tick++) {
    // Something disturbs it once.
    const shock = tick < 2 ? 1.01 : 1;
    signals.latencyMs[0] = 1000 * (2 * weight) ** elasticity * shock;
    signals.latencyMs[1] = 1000 * (2 * (1 - weight)) ** elasticity;
    policy.tick!();
    errors.push(Math.abs(weight - 0.5));
  }
  return errors;
}

describe("the proportional controller", () => {
  it.each([0, 1, 2, 3, 5])("begins to cycle where theory says, at a delay of %i rounds", async (delay) => {
    const critical = 2 * Math.sin(Math.PI / (2 * (2 * delay + 1)));
    const elasticity = 2;
    const late = async (part: number) => {
      const errors = await twins(elasticity, (part * critical) / elasticity, delay);
      return Math.max(...errors.slice(-50)) / Math.max(...errors.slice(0, 30));
    };
    expect(await late(0.93)).toBeLessThan(0.3);
    expect(await late(1.07)).toBeGreaterThan(1.5);
  });
});

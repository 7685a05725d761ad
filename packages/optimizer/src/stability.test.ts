import { type Publication, seededRandom, standardNormal } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { objective } from "./bound.ts";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { keysMoved } from "./keys-moved.ts";
import { meanLatency } from "./nearest.ts";
import { plan } from "./plan.ts";
import type { PlanInputs } from "./plan-types.ts";
import type { Problem } from "./problem.ts";
import { createSimplex } from "./simplex/choose.ts";
import { randomInstance } from "./simplex/instance.ts";
import { demandOf, Loop, moved, sixRegions } from "./stability.fixture.ts";
import { verifyCertificate } from "./verify.ts";

/** The best plan of these inputs, were moves free. */
function freeOptimum(inputs: PlanInputs): Publication {
  const policy = { ...inputs.fleet.policy, churnMs: 0, gateMs: 0 };
  return plan({ ...inputs, fleet: { ...inputs.fleet, policy } }, null, null, { deadlineMs: null }).publication!;
}

function costOf({ clusters }: Publication): number {
  const [any] = clusters.values();
  return any!.certificate.churnFree.objectiveMs;
}

describe("inputs that stand still", () => {
  it("move nothing after the first tick, ever", async () => {
    const inputs = inputsOf(await threeClusters("{ headroom: 0.06 }"));
    const loop = new Loop();
    loop.tick(inputs);
    const { previous, warm } = loop;
    for (let tick = 2; tick <= 100; tick++) {
      expect(loop.tick(inputs).status).toBe("held");
      // A plan is a function of these and the inputs: what one such tick gives every later one gives as well.
      expect(loop.previous).toBe(previous);
      expect(loop.warm).toBe(warm);
    }
  });

  it.each([0.75, 1.3])(
    "move nothing after the first of 200 ticks that all solve, at %s of what the fleet holds",
    {
      timeout: 60_000,
    },
    async (utilisation) => {
      const inputs = demandOf(await sixRegions("{ gateMs: 0 }", utilisation));
      const loop = new Loop();
      loop.tick(inputs);
      const first = loop.published;
      for (let tick = 2; tick <= 200; tick++) {
        expect(loop.tick(inputs).status).toBe("solved");
        expect(keysMoved(first, loop.published), `tick ${tick}`).toBe(0);
      }
    },
  );
});

describe("demand that is noisy", () => {
  /** Share of the traffic that is sent elsewhere per tick, over a day's cycle, and the price of not chasing the noise. */
  function follow(seed: number, churnMs: number): { movedShare: number; loss: number } {
    const random = seededRandom(seed);
    const base = randomInstance({ cells: 48, engines: 60, seed, utilisation: 0.63, density: 0.5 });
    const simplex = createSimplex("auto");
    const phase = base.demandWps.map(() => 2 * Math.PI * random());
    const drift = new Float64Array(48);
    let weights: Float64Array | null = null;
    let [movedSum, costSum, bestSum] = [0, 0, 0];
    const ticks = 200;
    for (let tick = 0; tick < ticks; tick++) {
      const demandWps = base.demandWps.map((demand, cell) => {
        drift[cell] = 0.8 * drift[cell]! + 0.02 * standardNormal(random);
        const day = 1 + 0.35 * Math.sin((2 * Math.PI * tick) / ticks + phase[cell]!);
        return demand * day * Math.exp(drift[cell]!);
      });
      const problem: Problem = { ...base, demandWps };
      const priced = weights === null ? problem : { ...problem, churn: movesFrom(problem, weights, churnMs) };
      const solution = simplex.solve(priced);
      const { flowWps, loadWps, shedWps } = solution;
      const best = simplex.solve(problem).objectiveMs;
      const next = flowWps.slice();
      let [total, different] = [0, 0];
      for (let cell = 0; cell < 48; cell++) {
        for (let arc = base.arcStart[cell]!; arc < base.arcStart[cell + 1]!; arc++) {
          next[arc] = flowWps[arc]! / (demandWps[cell]! - shedWps[cell]!);
          if (weights !== null) different += (demandWps[cell]! * Math.abs(next[arc]! - weights[arc]!)) / 2;
        }
        total += demandWps[cell]!;
      }
      if (weights !== null) movedSum += different / total;
      expect(shedWps.every((shed) => shed === 0)).toBe(true);
      expect(loadWps.every((load, engine) => load <= base.curves.capacityWps[engine]!)).toBe(true);
      costSum += objective(problem, solution);
      bestSum += best;
      weights = next;
    }
    return { movedShare: movedSum / (ticks - 1), loss: costSum / bestSum - 1 };
  }

  function movesFrom(problem: Problem, weights: Float64Array, churnMs: number): NonNullable<Problem["churn"]> {
    const referenceWps = weights.slice();
    for (const [cell, demand] of problem.demandWps.entries())
      for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) referenceWps[arc]! *= demand;
    return { referenceWps, moveMs: new Float64Array(weights.length).fill(churnMs) };
  }

  it("moves half as much for 1 ms a move, within a tenth of the measured 1.5 % a tick, at hardly any cost", {
    timeout: 60_000,
  }, () => {
    for (const seed of [1, 2]) {
      const [free, one, two] = [0, 1, 2].map((churnMs) => follow(seed, churnMs));
      const at = `seed ${seed}`;
      expect(one!.movedShare, at).toBeLessThan(1.1 * 0.0147);
      expect(one!.movedShare, at).toBeLessThan(free!.movedShare / 1.8);
      expect(one!.loss, at).toBeLessThan(0.001);
      // Paid on the side that gains alone, 2 ms are what 1 ms on both sides is in the measured series: 2.2 times less or more.
      expect(two!.movedShare, at).toBeLessThan(free!.movedShare / 2.2);
      expect(two!.loss, at).toBeLessThan(0.002);
    }
  });
});

describe("a shock", () => {
  const CALM = "{ gateMs: 0.5, churnMs: 1 }";
  const shocks: readonly { what: string; of: (inputs: PlanInputs) => PlanInputs }[] = [
    { what: "an engine lost", of: ({ fleet }) => demandOf(fleet, () => 1, { eq1: { readyReplicas: 0 } }) },
    {
      what: "30 % more demand in a region",
      of: ({ fleet }) => demandOf(fleet, (cluster) => (cluster === "cr" ? 1.3 : 1)),
    },
    {
      what: "an engine swapped for another SKU",
      of: (inputs) => {
        const engines = new Map(inputs.fleet.engines);
        const old = engines.get("ep1")!;
        const profile = old.profile === "other" ? "h100" : "other";
        const { capacityWps } = inputs.fleet.profiles.get(profile)!;
        engines.set("ep1", { ...old, profile, capacityWps });
        return { ...inputs, fleet: { ...inputs.fleet, engines } };
      },
    },
  ];

  it.each(shocks)(
    "of $what is answered within 1 % of the best in three ticks, by moves there is no way around",
    async ({ of }) => {
      const calm = demandOf(await sixRegions(CALM));
      const loop = new Loop();
      loop.tick(calm);
      const before = loop.published;
      const shocked = of(calm);
      const best = freeOptimum(shocked);
      let moves = 0;
      for (let tick = 0; tick < 3; tick++) {
        const last = loop.published;
        const { publication } = loop.tick(shocked);
        if (publication === null) continue;
        // No engine is given more than it holds, at any of the steps.
        expect(verifyCertificate(publication)).toEqual([]);
        moves += keysMoved(last, publication)!;
      }
      expect(costOf(loop.published)).toBeLessThan(1.01 * costOf(best));
      // Straight there: what moved is what differs, to the rounding of rings, and no more than the best plan differs by.
      expect(moves).toBeLessThanOrEqual(1.1 * moved(before, loop.published) + 1e-3);
      expect(moves).toBeLessThanOrEqual(1.1 * moved(before, best) + 1e-3);
      expect(moves).toBeGreaterThan(0);
    },
  );
});

describe("profiles that are wrong", () => {
  it.each([0.7, 1, 1.3])(
    "by a factor of %s set nothing swinging: what is measured of latency is no input",
    { timeout: 60_000 },
    async (wrong) => {
      const fleet = await sixRegions("{ churnMs: 1 }", 0.75, wrong);
      const random = seededRandom(17);
      const loop = new Loop();
      loop.tick(demandOf(fleet));
      const latencies: number[] = [];
      let [path, last] = [0, loop.published];
      const first = last;
      for (let tick = 0; tick < 60; tick++) {
        loop.tick(demandOf(fleet, () => 1 + 0.02 * (2 * random() - 1)));
        if (loop.published !== last) path += moved(last, loop.published);
        last = loop.published;
        latencies.push(meanLatency(last).meanMs!);
      }
      // Two per cent of noise: less than the 1.5 % a tick that chasing it would move, and never far from the start.
      expect(path / 60).toBeLessThan(1.1 * 0.0147);
      expect(moved(first, last)).toBeLessThan(0.05);
      expect(Math.max(...latencies) / Math.min(...latencies)).toBeLessThan(1.05);
    },
  );
});

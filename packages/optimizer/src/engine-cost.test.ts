import { evaluateCurves, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { conjugate, costAt, engineCost, leftMarginalAt, marginalAt } from "./engine-cost.ts";
import { makeProblem, randomProblem } from "./problem.fixture.ts";

describe("an engine's cost as parabolas", () => {
  const random = seededRandom(11);
  const sets = Array.from({ length: 60 }, () => randomProblem(random, 1, 6, 0.5).curves);

  it("agrees with core's curve in value and marginal at any load up to and past the capacity", () => {
    for (const curves of sets) {
      const loads = curves.capacityWps.map((capacity) => 1.02 * capacity * random());
      const out = { value: loads.slice(), slope: loads.slice(), curvature: loads.slice() };
      evaluateCurves(curves, loads, out);
      for (const [engine, load] of loads.entries()) {
        const cost = engineCost(curves, engine);
        expect(costAt(cost, load)).toBeCloseTo(out.value[engine]!, 6);
        expect(marginalAt(cost, load)).toBeCloseTo(out.slope[engine]!, 6);
      }
    }
  });

  it("has the conjugate that a scan of its loads finds", () => {
    for (const curves of sets) {
      for (let engine = 0; engine < curves.capacityWps.length; engine++) {
        const cost = engineCost(curves, engine);
        const price = 3000 * random();
        let best = 0;
        for (let part = 0; part <= 4000; part++) {
          const load = (cost.capacityWps * part) / 4000;
          best = Math.max(best, price * load - costAt(cost, load));
        }
        const { valueMs, loadWps } = conjugate(cost, price);
        expect(valueMs).toBeGreaterThanOrEqual(best - 1e-9 * Math.max(1, best));
        // A scan's step off the vertex loses φ″·step²/8 at most; 1e5 ms is the steepest bend here times the capacity.
        expect(valueMs).toBeLessThanOrEqual(best + (2e5 * cost.capacityWps) / 4000 ** 2 + 1e-6);
        expect(loadWps).toBeLessThanOrEqual(cost.capacityWps);
      }
    }
  });

  it("jumps at a knot from the left marginal to the right", () => {
    const { curves } = makeProblem({
      demand: [],
      cost: [],
      capacity: [100],
      curves: [
        [
          [0, 0],
          [0.5, 50],
          [1, 250],
        ],
      ],
    });
    const cost = engineCost(curves, 0);
    expect(leftMarginalAt(cost, 50)).toBe(100);
    expect(marginalAt(cost, 50)).toBe(250);
    expect(leftMarginalAt(cost, 0)).toBe(Number.NEGATIVE_INFINITY);
  });

  it("is nothing without capacity", () => {
    const { curves } = makeProblem({ demand: [], cost: [], capacity: [0], curves: [[[0, 5]]] });
    expect(costAt(engineCost(curves, 0), 3)).toBe(0);
    expect(conjugate(engineCost(curves, 0), 100)).toEqual({ valueMs: 0, loadWps: 0 });
  });
});

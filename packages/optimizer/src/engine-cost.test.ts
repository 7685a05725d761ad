import { evaluateCurves, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { conjugate, costAt, kinksOf, leftMarginalAt, loadAt, marginalAt } from "./engine-cost.ts";
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
        expect(costAt(curves, engine, load)).toBeCloseTo(out.value[engine]!, 6);
        expect(marginalAt(curves, engine, load)).toBeCloseTo(out.slope[engine]!, 6);
      }
    }
  });

  it("has the conjugate that a scan of its loads finds", () => {
    for (const curves of sets) {
      for (let engine = 0; engine < curves.capacityWps.length; engine++) {
        const capacity = curves.capacityWps[engine]!;
        const price = 3000 * random();
        let best = 0;
        for (let part = 0; part <= 4000; part++) {
          const load = (capacity * part) / 4000;
          best = Math.max(best, price * load - costAt(curves, engine, load));
        }
        const valueMs = conjugate(curves, engine, price);
        expect(valueMs).toBeGreaterThanOrEqual(best - 1e-9 * Math.max(1, best));
        // A scan's step off the vertex loses φ″·step²/8 at most; 1e5 ms is the steepest bend here times the capacity.
        expect(valueMs).toBeLessThanOrEqual(best + (2e5 * capacity) / 4000 ** 2 + 1e-6);
        expect(loadAt(curves, engine, price)).toBeLessThanOrEqual(capacity);
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
    expect(leftMarginalAt(curves, 0, 50)).toBe(100);
    expect(marginalAt(curves, 0, 50)).toBe(250);
    expect(leftMarginalAt(curves, 0, 0)).toBe(Number.NEGATIVE_INFINITY);
    expect(kinksOf(curves, 0)).toEqual([0, 50]);
  });

  it("is nothing without capacity", () => {
    const { curves } = makeProblem({ demand: [], cost: [], capacity: [0], curves: [[[0, 5]]] });
    expect(costAt(curves, 0, 3)).toBe(0);
    expect(conjugate(curves, 0, 100)).toBe(0);
    expect(loadAt(curves, 0, 100)).toBe(0);
    expect(kinksOf(curves, 0)).toEqual([]);
  });
});

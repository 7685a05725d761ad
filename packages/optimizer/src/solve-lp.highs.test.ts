import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { splitGap } from "./bound.ts";
import { leastCostByHighs } from "./highs.fixture.ts";
import { randomProblem } from "./problem.fixture.ts";
import { solveLp } from "./solve-lp.ts";

describe("against HiGHS and weak duality, on random instances of up to 8 cells and engines at 30 to 130 %", {
  timeout: 60_000,
}, () => {
  const random = seededRandom(20_261_129);
  const instances = Array.from({ length: 40 }, () => {
    const [cells, engines] = [1 + Math.floor(8 * random()), 1 + Math.floor(8 * random())];
    return randomProblem(random, cells, engines, 0.3 + random());
  });

  it("costs what the least of HiGHS's chords costs, to 1e-4, and never less than its bound", () => {
    for (const problem of instances) {
      const { status, objectiveMs, lowerBoundMs } = solveLp(problem);
      const { costMs, errorMs } = leastCostByHighs(problem);
      const tiny = 1e-6 * Math.max(1, costMs);
      expect(status).toBe("solved");
      expect(objectiveMs).toBeLessThanOrEqual(costMs + 100 * tiny);
      expect(objectiveMs).toBeGreaterThanOrEqual(costMs - errorMs - tiny);
      expect(lowerBoundMs).toBeLessThanOrEqual(costMs + tiny);
      expect(objectiveMs - lowerBoundMs).toBeLessThanOrEqual(100 * tiny);
    }
  });

  it("routes or sheds all demand, overfills no engine, and splits the gap into parts that are not negative", () => {
    for (const problem of instances) {
      const solution = solveLp(problem);
      const scale = Math.max(1, solution.objectiveMs);
      for (const [cell, demand] of problem.demandWps.entries()) {
        const flows = solution.flowWps.subarray(problem.arcStart[cell]!, problem.arcStart[cell + 1]!);
        const sum = flows.reduce((total, flow) => total + flow, solution.shedWps[cell]!);
        expect(Math.abs(sum - demand)).toBeLessThanOrEqual(1e-12 * demand);
      }
      for (const [engine, load] of solution.loadWps.entries())
        expect(load).toBeLessThanOrEqual(problem.curves.capacityWps[engine]! * (1 + 1e-8));
      const split = splitGap(problem, solution, solution.priceMs);
      const parts = [...split.arcMs, ...split.shedMs, ...split.engineMs];
      expect(Math.min(...parts)).toBeGreaterThanOrEqual(-1e-9 * scale);
      const sum = parts.reduce((total, part) => total + part, 0);
      expect(Math.abs(sum - (solution.objectiveMs - solution.lowerBoundMs))).toBeLessThan(1e-9 * scale);
    }
  });
});

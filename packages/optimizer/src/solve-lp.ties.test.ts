import { seededRandom } from "@guidevane/core";
import { expect, it } from "vitest";
import { randomProblem } from "./problem.fixture.ts";
import { solveLp } from "./solve-lp.ts";

it("keeps its digits where all costs are equal: nothing overfilled, the gap small, in 150 random instances", () => {
  const random = seededRandom(99);
  for (let count = 0; count < 150; count++) {
    const instance = randomProblem(
      random,
      1 + Math.floor(20 * random()),
      1 + Math.floor(12 * random()),
      1.5 * random(),
    );
    const problem = { ...instance, arcCostMs: instance.arcCostMs.map(() => 100) };
    const { status, message, loadWps, objectiveMs, lowerBoundMs } = solveLp(problem);
    expect(status, message).toBe("solved");
    for (const [engine, load] of loadWps.entries())
      expect(load).toBeLessThanOrEqual(problem.curves.capacityWps[engine]! * (1 + 1e-7));
    // What the grid leaves: 1/2048 of an engine's reach, on curves as steep as these.
    expect(objectiveMs - lowerBoundMs).toBeLessThanOrEqual(1e-3 * Math.max(1, lowerBoundMs));
    expect(objectiveMs - lowerBoundMs).toBeGreaterThanOrEqual(-1e-8 * Math.max(1, lowerBoundMs));
  }
}, 60_000);

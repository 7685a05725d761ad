import { describe, expect, it } from "vitest";
import type { Problem } from "./problem.ts";
import { randomInstance } from "./simplex/instance.ts";
import { solveSimplex } from "./simplex/solve.ts";
import { solveLp } from "./solve-lp.ts";
import { verifySolution } from "./verify-solution.ts";

const problem = randomInstance({ cells: 30, engines: 20, seed: 3, utilisation: 1.1 });

/** The same problem with a reference from a solve at other demand. */
function withChurn(moveMs: number): Problem {
  const before = solveSimplex({
    ...problem,
    demandWps: problem.demandWps.map((demand, cell) => demand * (0.8 + (cell % 5) / 10)),
  });
  return {
    ...problem,
    churn: { referenceWps: before.flowWps, moveMs: new Float64Array(before.flowWps.length).fill(moveMs) },
  };
}

describe("the check of a solution", () => {
  it.each([
    ["network simplex", solveSimplex],
    ["linear programme", (each: Problem) => solveLp(each)],
  ])("finds nothing wrong with the %s's, and its gap's parts sum to the whole", (_, solve) => {
    const solution = solve(problem);
    const check = verifySolution(problem, solution);
    expect(check.faults).toEqual([]);
    const { arcsMs, shedMs, enginesMs } = check.split!;
    expect(arcsMs + shedMs + enginesMs).toBeCloseTo(check.objectiveMs - check.lowerBoundMs, 3);
  });

  it.each([1, 30])("proves a solution with a price of %d ms on moves", (moveMs) => {
    const moving = withChurn(moveMs);
    const solution = solveSimplex(moving);
    const check = verifySolution(moving, solution);
    expect(check.faults).toEqual([]);
    expect(check.objectiveMs - check.lowerBoundMs).toBeLessThan(1e-6 * check.objectiveMs);
    // The bound is of the problem with moves, which costs more than the one without.
    expect(check.lowerBoundMs).toBeGreaterThan(solveSimplex(problem).objectiveMs);
  });

  const solution = solveSimplex(problem);
  const used = solution.flowWps.findIndex((flow) => flow > 0);
  const changed = (column: Float64Array, at: number, value: number) => column.with(at, value);
  it.each([
    ["a flow that is not there", { flowWps: changed(solution.flowWps, used, 0) }, "units/s routed or shed"],
    ["a negative flow", { flowWps: changed(solution.flowWps, used, -1) }, "-1 units/s to engine"],
    ["a flow that is no number", { flowWps: changed(solution.flowWps, used, Number.NaN) }, "NaN units/s to engine"],
    ["a load that its flows do not make", { loadWps: changed(solution.loadWps, 0, 0.5) }, "engine 0: its flows sum to"],
    ["a cost that is too low", { objectiveMs: solution.objectiveMs * 0.999 }, "the cost is"],
    [
      "a bound that its prices do not prove",
      { priceMs: solution.priceMs.map((price) => price * 1.1) },
      "the prices prove a bound of",
    ],
  ])("finds %s", (_, change, says) => {
    expect(verifySolution(problem, { ...solution, ...change }).faults.join("; ")).toContain(says);
  });

  it("finds an engine beyond its capacity", () => {
    const small = {
      ...problem,
      curves: { ...problem.curves, capacityWps: problem.curves.capacityWps.map((each) => each / 2) },
    };
    expect(verifySolution(small, solution).faults.join("; ")).toMatch(/engine \d+: [\d.]+ units\/s on a capacity of/);
  });
});

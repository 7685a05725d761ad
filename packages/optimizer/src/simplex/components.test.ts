import { describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import { verifySolution } from "../verify-solution.ts";
import { createSimplex } from "./choose.ts";
import { components, solveByComponents } from "./components.ts";
import { manyModels, noisyDemand, randomInstance } from "./instance.ts";
import { oddProblem } from "./odd-problem.fixture.ts";

const simplex = createSimplex("ts");

/** Which cells and engines a walk along the arcs reaches from each cell: a way that shares nothing with the union. */
function reachable(problem: Problem, from: number): { cells: number[]; engines: number[] } {
  const cells = new Set([from]);
  const engines = new Set<number>();
  let before = -1;
  while (before !== cells.size + engines.size) {
    before = cells.size + engines.size;
    for (let cell = 0; cell < problem.demandWps.length; cell++) {
      const row = problem.arcEngine.subarray(problem.arcStart[cell], problem.arcStart[cell + 1]);
      if (cells.has(cell)) for (const engine of row) engines.add(engine);
      else if (row.some((engine) => engines.has(engine))) cells.add(cell);
    }
  }
  const rising = (set: Set<number>) => [...set].sort((a, b) => a - b);
  return { cells: rising(cells), engines: rising(engines) };
}

describe("independent parts", () => {
  it("are what a walk along the arcs reaches, each cell, engine and arc in one of them", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const problem = oddProblem(seed, seed % 2 === 0);
      const parts = components(problem);
      for (const column of ["cells", "engines", "arcs"] as const) {
        const all = parts.flatMap((part) => [...part[column]]).sort((a, b) => a - b);
        const count = { cells: problem.demandWps, engines: problem.curves.capacityWps, arcs: problem.arcEngine };
        expect(all).toEqual(Array.from(count[column], (_, at) => at));
      }
      for (const part of parts) {
        const [first] = part.cells;
        if (first === undefined || part.arcs.length === 0) continue;
        expect({ cells: [...part.cells], engines: [...part.engines] }).toEqual(reachable(problem, first));
      }
    }
  });

  it("give flows that the verifier accepts, at the cost of the problem solved whole", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const problem = oddProblem(seed, seed % 3 === 0);
      const one = simplex.solve(problem);
      const joined = solveByComponents(problem, simplex);
      expect(joined.status).toBe(one.status);
      const scale = Math.abs(one.objectiveMs) + 1e-9;
      expect(Math.abs(joined.objectiveMs - one.objectiveMs) / scale, `seed ${seed}`).toBeLessThan(1e-6);
      expect(joined.lowerBoundMs).toBeLessThanOrEqual(one.objectiveMs + 1e-9 * scale);
      if (one.status === "solved") expect(verifySolution(problem, joined).faults, `seed ${seed}`).toEqual([]);
    }
  });

  it("are as many as there are models that share no engine, whatever the order of their cells", () => {
    const problem = manyModels({ models: 9, clusters: 5, engines: 8, seed: 3 });
    expect(components(problem).map(({ cells, engines }) => [cells.length, engines.length])).toEqual(
      Array.from({ length: 9 }, () => [5, 8]),
    );
  });

  it("start from what the last solve left, whole or by parts, without a pivot where nothing changed", () => {
    const problem = manyModels({ models: 6, clusters: 8, engines: 10, seed: 5 });
    const { warm } = solveByComponents(problem, simplex);
    expect(solveByComponents(problem, simplex, { warm }).pivots).toBe(0);
    expect(simplex.solve(problem, { warm }).pivots).toBe(0);
    const noisy = noisyDemand(problem, 0.02, 1);
    const cold = solveByComponents(noisy, simplex);
    const warmed = solveByComponents(noisy, simplex, { warm });
    expect(warmed.pivots).toBeLessThan(cold.pivots / 4);
    expect(Math.abs(warmed.objectiveMs - cold.objectiveMs)).toBeLessThan(1e-8 * cold.objectiveMs);
  });

  it("is the problem itself where everything is connected", () => {
    const problem = randomInstance({ cells: 20, engines: 10, seed: 1, density: 1 });
    expect(components(problem)[0]!.problem).toBe(problem);
  });

  it("refuse what the solver refuses, and say which part stopped early", () => {
    const problem = manyModels({ models: 3, clusters: 5, engines: 8, seed: 4 });
    const demandWps = problem.demandWps.map((value, cell) => (cell === 7 ? Number.NaN : value));
    expect(solveByComponents({ ...problem, demandWps }, simplex)).toMatchObject({
      status: "not-finite",
      message: "demandWps[7] is NaN",
    });
    const capped = solveByComponents(problem, simplex, { pivotLimit: 0 });
    expect(capped.status).toBe("capped");
    expect(capped.message).toMatch(/^part 1 of 3: reached the pivot limit/);
    expect(capped.objectiveMs).toBeGreaterThanOrEqual(capped.lowerBoundMs);
  });
});

import { describe, expect, it } from "vitest";
import type { Problem } from "../problem.ts";
import { carryWarm } from "./carry-warm.ts";
import { randomInstance } from "./instance.ts";
import { solveSimplex } from "./solve.ts";

/** The problem with only these cells and engines, in this order. */
function pick(problem: Problem, cells: readonly number[], engines: readonly number[]): Problem {
  const engineNow = new Map(engines.map((engine, now) => [engine, now]));
  const arcs = cells.map((cell) => {
    const row: number[] = [];
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      if (engineNow.has(problem.arcEngine[arc]!)) row.push(arc);
    return row;
  });
  const flat = arcs.flat();
  const { curves } = problem;
  const knots = engines.map((engine) => [curves.knotStart[engine]!, curves.knotStart[engine + 1]!] as const);
  let arcEnd = 0;
  let knotEnd = 0;
  return {
    ...problem,
    demandWps: Float64Array.from(cells, (cell) => problem.demandWps[cell]!),
    shedMs: Float64Array.from(cells, (cell) => problem.shedMs[cell]!),
    arcStart: Uint32Array.from([0, ...arcs.map((row) => (arcEnd += row.length))]),
    arcEngine: Uint32Array.from(flat, (arc) => engineNow.get(problem.arcEngine[arc]!)!),
    arcCostMs: Float64Array.from(flat, (arc) => problem.arcCostMs[arc]!),
    curves: {
      ...curves,
      capacityWps: Float64Array.from(engines, (engine) => curves.capacityWps[engine]!),
      knotStart: Uint32Array.from([0, ...knots.map(([start, end]) => (knotEnd += end - start))]),
      knotRho: Float64Array.from(knots.flatMap(([start, end]) => [...curves.knotRho.subarray(start, end)])),
      knotMs: Float64Array.from(knots.flatMap(([start, end]) => [...curves.knotMs.subarray(start, end)])),
    },
  };
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe("carrying a tree over to another fleet", () => {
  const whole = randomInstance({ cells: 80, engines: 100, seed: 3, utilisation: 0.7 });

  it("needs no pivot when only the numbers changed", () => {
    const first = solveSimplex(whole);
    const cells = range(0, 80).reverse();
    const engines = range(0, 100).reverse();
    const warm = carryWarm(first.warm, Int32Array.from(cells), Int32Array.from(engines));
    const second = solveSimplex(pick(whole, cells, engines), { warm });
    expect(second.pivots).toBe(0);
    expect(second.objectiveMs).toBeCloseTo(first.objectiveMs, 3);
  });

  it.each([
    ["an engine is new", range(0, 80), range(0, 99), range(0, 80), range(0, 100)],
    ["an engine is gone", range(0, 80), range(0, 100), range(0, 80), range(1, 100)],
    ["a cell is new", range(0, 79), range(0, 100), range(0, 80), range(0, 100)],
    ["a cell is gone", range(0, 80), range(0, 100), range(1, 80), range(0, 100)],
  ])(
    "takes far fewer pivots than from nothing, to the same cost, when %s",
    (_, cellsBefore, enginesBefore, cells, engines) => {
      const before = solveSimplex(pick(whole, cellsBefore, enginesBefore));
      const after = pick(whole, cells, engines);
      const warm = carryWarm(
        before.warm,
        Int32Array.from(cells, (cell) => cellsBefore.indexOf(cell)),
        Int32Array.from(engines, (engine) => enginesBefore.indexOf(engine)),
      );
      const carried = solveSimplex(after, { warm });
      const cold = solveSimplex(after);
      expect(carried.status).toBe("solved");
      expect(Math.abs(carried.objectiveMs - cold.objectiveMs)).toBeLessThanOrEqual(2e-9 * cold.objectiveMs);
      expect(carried.pivots).toBeLessThan(cold.pivots / 2);
    },
  );

  it("starts from nothing where what it is given is no tree", () => {
    const { warm } = solveSimplex(whole);
    for (const parent of [
      warm.parent.map((_, node) => (node === 0 ? 1 : warm.parent[node]!)),
      new Int32Array(180).fill(-5),
    ]) {
      const solution = solveSimplex(whole, { warm: { ...warm, parent } });
      expect(solution.status).toBe("solved");
      expect(solution.pivots).toBeGreaterThan(50);
    }
  });
});

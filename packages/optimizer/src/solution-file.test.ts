import { describe, expect, it } from "vitest";
import { parseProblemFile, writeProblemFile } from "./problem-file.ts";
import { noisyDemand, randomInstance } from "./simplex/instance.ts";
import { type SimplexSolution, solveSimplex } from "./simplex/solve.ts";
import { readWarm, writeSolutionFile } from "./solution-file.ts";

const problem = randomInstance({ cells: 40, engines: 30, seed: 8 });
const file = read(problem);

function read(each: typeof problem, engineIds?: readonly string[]) {
  return parseProblemFile(JSON.stringify(writeProblemFile(each, undefined, engineIds)), "p.json");
}

function write(solution: SimplexSolution) {
  if (solution.status !== "solved") throw new Error(solution.message);
  return writeSolutionFile(
    file,
    { ...solution, status: solution.status },
    { solver: "ts", solveMs: 1, warm: solution.warm },
  );
}

describe("a solution file", () => {
  const solution = solveSimplex(problem);
  const written = write(solution);

  it("lists what carries traffic, with weights that sum to 1 in each cell", () => {
    expect(written.arcs.flowWps).toEqual([...solution.flowWps].filter((flow) => flow > 0));
    const sums = new Float64Array(40);
    for (const [at, cell] of written.arcs.cell.entries()) sums[cell]! += written.arcs.weight[at]!;
    for (const sum of sums) expect(sum).toBeCloseTo(1, 12);
    expect(written.gapMs).toBe(solution.objectiveMs - solution.lowerBoundMs);
  });

  it("prices a cell at its cheapest way: every used arc costs that much, no other less", () => {
    for (const [at, cell] of written.arcs.cell.entries()) {
      const cost = problem.arcCostMs[written.arcs.arc[at]!]! + written.engines.priceMs[written.arcs.engine[at]!]!;
      expect(cost).toBeCloseTo(written.cells.priceMs[cell]!, 6);
    }
  });

  it("lets the next solve begin where this one ended", () => {
    const next = noisyDemand(problem, 0.01, 4);
    const warm = readWarm(JSON.stringify(written), "s.json", file);
    const [cold, after] = [solveSimplex(next), solveSimplex(next, { warm })];
    expect(after.pivots).toBeLessThan(cold.pivots / 3);
    expect(Math.abs(after.objectiveMs - cold.objectiveMs)).toBeLessThan(1e-8 * cold.objectiveMs);
  });

  it("finds engines by their names when they stand in another place", () => {
    const last = 29;
    const ids = Array.from({ length: 30 }, (_, engine) => String(engine));
    const turned = { ...file, engineIds: ids.toReversed() };
    const warm = readWarm(JSON.stringify(written), "s.json", turned);
    expect(warm.load[0]).toBe(solution.warm.load[last]);
  });

  it.each([
    ["nothing to start from", { warm: null }, "warm: is null"],
    ["a tree of another size", { warm: { ...written.warm!, parent: [1] } }, "warm.parent: 1 entries, must have 70"],
    [
      "a parent that is none",
      { warm: { ...written.warm!, parent: written.warm!.parent.with(0, 3) } },
      "warm.parent.0: 3 is no parent",
    ],
    ["another format", { format: "x" }, "format: "],
  ])("with %s is refused, naming the field", (_, changes, says) => {
    expect(() => readWarm(JSON.stringify({ ...written, ...changes }), "s.json", file)).toThrow(says);
  });
});

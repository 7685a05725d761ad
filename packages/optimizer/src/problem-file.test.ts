import { readFileSync } from "node:fs";
import { GuidevaneError } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { curveKnots } from "./curve-kinds.ts";
import { parseProblemFile, problemFileJsonSchema, writeProblemFile } from "./problem-file.ts";
import { randomInstance } from "./simplex/instance.ts";

/** Two cells and two engines; arcs out of order. */
const SMALL = {
  format: "guidevane-problem-1",
  cells: { id: ["east chat", "west chat"], demandWps: [3, 4], shedMs: [60000, 120000] },
  engines: { id: ["a", "b"], capacityWps: [5, 10], curve: [0, 0] },
  curves: [{ kind: "linear", ms: 100 }],
  arcs: { cell: [1, 0, 1, 0], engine: [0, 1, 1, 0], costMs: [40, 30, 20, 10] },
};

function parse(changes: Record<string, unknown>) {
  return parseProblemFile(JSON.stringify({ ...SMALL, ...changes }), "p.json");
}

function refusal(changes: Record<string, unknown>): string {
  try {
    parse(changes);
  } catch (error) {
    if (GuidevaneError.is(error) && error.code === "bad_problem") return error.message;
    throw error;
  }
  return "taken";
}

describe("a problem file", () => {
  it("gives its arcs by cell and engine, and says where each stood", () => {
    const { problem, arcFrom, cellIds, engineIds } = parse({});
    expect([...problem.arcStart]).toEqual([0, 2, 4]);
    expect([...problem.arcEngine]).toEqual([0, 1, 0, 1]);
    expect([...problem.arcCostMs]).toEqual([10, 30, 40, 20]);
    expect([...arcFrom]).toEqual([3, 1, 0, 2]);
    expect([cellIds, engineIds]).toEqual([SMALL.cells.id, SMALL.engines.id]);
    expect(problem.churn).toBeUndefined();
  });

  it("comes back as it was written, to the last bit", () => {
    const churn = { referenceWps: new Float64Array(120).fill(0.25), moveMs: new Float64Array(120).fill(1) };
    const whole = { ...randomInstance({ cells: 20, engines: 30, seed: 5 }), churn };
    expect(parseProblemFile(JSON.stringify(writeProblemFile(whole)), "p.json").problem).toEqual(whole);
  });

  it("is read in well under a second with 200,000 arcs", () => {
    const text = JSON.stringify(writeProblemFile(randomInstance({ cells: 1000, engines: 1000, seed: 1 })));
    let leastMs = Number.POSITIVE_INFINITY;
    for (let run = 0; run < 3; run++) {
      const startMs = performance.now();
      expect(parseProblemFile(text, "p.json").problem.arcEngine.length).toBe(200_000);
      leastMs = Math.min(leastMs, performance.now() - startMs);
    }
    expect(leastMs).toBeLessThan(1000);
  });

  it.each([
    ["an unknown key", { color: "red" }, "color: is not a key here"],
    ["another format", { format: "guidevane-problem-2" }, "format: "],
    ["a missing column", { arcs: { cell: [0], engine: [0] } }, "arcs.costMs: "],
    ["a column that is none", { cells: { ...SMALL.cells, demandWps: 3 } }, "cells.demandWps: must be an array"],
    [
      "a negative demand",
      { cells: { ...SMALL.cells, demandWps: [3, -4] } },
      "cells.demandWps.1: must be a number of 0 or more (got -4)",
    ],
    [
      "a demand that is null",
      { cells: { ...SMALL.cells, demandWps: [3, null] } },
      "cells.demandWps.1: must be a number of 0 or more (got null)",
    ],
    ["a short column", { arcs: { ...SMALL.arcs, costMs: [1, 2, 3] } }, "arcs.costMs: must have 4 entries (got 3)"],
    [
      "a cell that is not there",
      { arcs: { ...SMALL.arcs, cell: [2, 0, 1, 0] } },
      "arcs.cell.0: must be an index below 2 (got 2)",
    ],
    [
      "an arc that stands twice",
      { arcs: { ...SMALL.arcs, engine: [1, 1, 1, 0] } },
      "arcs.engine.2: cell 1 has this arc already (got 1)",
    ],
    [
      "a name that stands twice",
      { engines: { ...SMALL.engines, id: ["a", "a"] } },
      'engines.id.1: stands twice (got "a")',
    ],
    [
      "a falling curve",
      {
        curves: [
          {
            kind: "knots",
            knots: [
              [0, 5],
              [1, 4],
            ],
          },
        ],
      },
      "curves.0.knots.1: the curve must be convex and rising (got [1,4])",
    ],
    [
      "a curve that bends down",
      {
        curves: [
          {
            kind: "knots",
            knots: [
              [0, 0],
              [0.5, 4],
              [1, 5],
            ],
          },
        ],
      },
      "curves.0.knots.2: the curve must be convex",
    ],
    ["an unknown kind of curve", { curves: [{ kind: "spline" }] }, "curves.0.kind: "],
    [
      "a pole at full load",
      { curves: [{ kind: "queue", ms: 1, exponent: 2, servers: 1, pole: 1 }] },
      "curves.0.pole: ",
    ],
    [
      "a reference without its price",
      { arcs: { ...SMALL.arcs, referenceWps: [0, 0, 0, 0] } },
      "arcs.moveMs: referenceWps and moveMs come together",
    ],
  ])("with %s is refused, naming the field", (_, changes, says) => {
    expect(refusal(changes)).toContain(says);
  });

  it("refuses a number that JSON lets grow past all bounds", () => {
    const text = JSON.stringify(SMALL).replace("[3,4]", "[3,1e999]");
    expect(() => parseProblemFile(text, "p.json")).toThrow(
      "cells.demandWps.1: must be a number of 0 or more (got Infinity)",
    );
    expect(() => parseProblemFile("{", "p.json")).toThrow("p.json: is not JSON");
  });

  it("has the JSON Schema that the package ships", () => {
    const shipped: unknown = JSON.parse(readFileSync(new URL("../problem-file.schema.json", import.meta.url), "utf8"));
    expect(shipped).toEqual(problemFileJsonSchema());
  });
});

describe("a curve of a smooth kind", () => {
  const pole = { kind: "queue", ms: 200, linear: 0.5, exponent: 4, servers: 8, pole: 1.02 } as const;

  it.each([
    ["power", { kind: "power", ms: 80, exponent: 3 } as const, (rho: number) => 80 * rho ** 3],
    ["queue", pole, (rho: number) => 200 * (0.5 * rho + (rho / 1.02) ** 4 / (8 * (1 - rho / 1.02)))],
  ])("is its chords: %s is met at the knots and nowhere missed by 1 %", (_, curve, value) => {
    const knots = curveKnots(curve);
    let worst = 0;
    for (const [at, [rho, ms]] of knots.entries()) {
      expect(ms).toBeCloseTo(value(rho), 9);
      if (at === 0) continue;
      const [left, leftMs] = knots[at - 1]!;
      const [middle, chord] = [(left + rho) / 2, (leftMs + ms) / 2];
      expect(chord).toBeGreaterThanOrEqual(value(middle) - 1e-9);
      if (middle > 0.2) worst = Math.max(worst, chord / value(middle) - 1);
    }
    expect(worst).toBeLessThan(0.01);
  });
});

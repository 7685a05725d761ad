import { GuidevaneError } from "@guidevane/core";
import { z } from "zod";
import type { ProblemIndex } from "./build-problem.ts";
import { checkProblem } from "./check-problem.ts";
import type { Problem } from "./problem.ts";
import { checkChurn } from "./simplex/solve.ts";

/**
 * `Publication.problem`: the problem that the weights were solved from and the engine prices that make its bound, as
 * plain JSON. Arrays are `Problem`'s columns; a cell's or engine's place in its list is its number there.
 */
const numbers = z.array(z.number());
const counts = z.array(z.int().nonnegative());

const storedProblemSchema = z.object({
  format: z.literal(1),
  cells: z.array(
    z.object({ cluster: z.string(), class: z.string(), demandRps: z.number().positive(), work: z.number().positive() }),
  ),
  engines: z.array(z.string()),
  demandWps: numbers,
  arcStart: counts,
  arcEngine: counts,
  arcCostMs: numbers,
  capacityWps: numbers,
  knotStart: counts,
  knotRho: numbers,
  knotMs: numbers,
  headroom: z.number(),
  headroomMs: z.number(),
  shedMs: numbers,
  shedStepMs: z.number(),
  shedSteps: z.int(),
  /** Absent = nothing to move from. m_k per cell, ms per unit of work; ẑ of the arcs that have one, work units/s. */
  churn: z.object({ moveMs: numbers, arcs: counts, referenceWps: numbers }).optional(),
  /** w_e, ms per unit of work. */
  priceMs: numbers,
});

export type StoredProblem = z.infer<typeof storedProblemSchema>;

export function storeProblem(problem: Problem, index: ProblemIndex, priceMs: Float64Array): StoredProblem {
  const { curves } = problem;
  return {
    format: 1,
    cells: index.cells.map(({ cluster, spec, demandRps }) => ({
      cluster: cluster.name,
      class: spec.name,
      demandRps,
      work: spec.work,
    })),
    engines: index.engines.map(({ spec }) => spec.id),
    demandWps: numbersOf(problem.demandWps),
    arcStart: numbersOf(problem.arcStart),
    arcEngine: numbersOf(problem.arcEngine),
    arcCostMs: numbersOf(problem.arcCostMs),
    capacityWps: numbersOf(curves.capacityWps),
    knotStart: numbersOf(curves.knotStart),
    knotRho: numbersOf(curves.knotRho),
    knotMs: numbersOf(curves.knotMs),
    headroom: curves.headroom,
    headroomMs: curves.headroomMs,
    shedMs: numbersOf(problem.shedMs),
    shedStepMs: problem.shedStepMs,
    shedSteps: problem.shedSteps,
    ...storeChurn(problem),
    priceMs: numbersOf(priceMs),
  };
}

/** A column as a plain array; spreading walks an iterator, which at a million arcs takes longer than the solve. */
function numbersOf(column: Float64Array | Uint32Array): number[] {
  const list = new Array<number>(column.length);
  for (let at = 0; at < column.length; at++) list[at] = column[at]!;
  return list;
}

function storeChurn({ churn, arcStart, demandWps }: Problem): Pick<StoredProblem, "churn"> {
  if (churn === undefined) return {};
  const { referenceWps } = churn;
  const arcs = Array.from(referenceWps.keys()).filter((arc) => referenceWps[arc]! > 0);
  return {
    churn: {
      // A move costs the same on every arc of a cell.
      moveMs: Array.from(demandWps.keys(), (cell) => churn.moveMs[arcStart[cell]!] ?? 0),
      arcs,
      referenceWps: arcs.map((arc) => referenceWps[arc]!),
    },
  };
}

function loadChurn({ churn, arcStart, arcEngine }: StoredProblem): Pick<Problem, "churn"> {
  if (churn === undefined) return {};
  const referenceWps = new Float64Array(arcEngine.length);
  const moveMs = new Float64Array(arcEngine.length);
  for (const [at, arc] of churn.arcs.entries()) {
    if (arc >= referenceWps.length)
      throw new GuidevaneError("bad_problem", `churn.arcs[${at}] is ${arc}, past ${referenceWps.length} arcs`);
    referenceWps[arc] = churn.referenceWps[at]!;
  }
  for (const [cell, value] of churn.moveMs.entries()) moveMs.fill(value, arcStart[cell], arcStart[cell + 1]);
  return { churn: { referenceWps, moveMs } };
}

/** The inverse, as far as a solver and a bound need it. @throws GuidevaneError `bad_problem`, saying what was wrong */
export function loadProblem(data: unknown): { problem: Problem; stored: StoredProblem; priceMs: Float64Array } {
  const parsed = storedProblemSchema.safeParse(data);
  if (!parsed.success) throw new GuidevaneError("bad_problem", z.prettifyError(parsed.error));
  const stored = parsed.data;
  const problem: Problem = {
    demandWps: Float64Array.from(stored.demandWps),
    arcStart: Uint32Array.from(stored.arcStart),
    arcEngine: Uint32Array.from(stored.arcEngine),
    arcCostMs: Float64Array.from(stored.arcCostMs),
    curves: {
      capacityWps: Float64Array.from(stored.capacityWps),
      knotStart: Uint32Array.from(stored.knotStart),
      knotRho: Float64Array.from(stored.knotRho),
      knotMs: Float64Array.from(stored.knotMs),
      headroom: stored.headroom,
      headroomMs: stored.headroomMs,
    },
    shedMs: Float64Array.from(stored.shedMs),
    shedStepMs: stored.shedStepMs,
    shedSteps: stored.shedSteps,
    ...loadChurn(stored),
  };
  const wrong = checkProblem(problem) ?? checkChurn(problem);
  if (wrong !== null) throw new GuidevaneError("bad_problem", wrong.message);
  const sizes: readonly (readonly [string, number, number])[] = [
    ["cells", stored.cells.length, stored.demandWps.length],
    ["engines", stored.engines.length, stored.capacityWps.length],
    ["priceMs", stored.priceMs.length, stored.capacityWps.length],
    ["churn.moveMs", stored.churn?.moveMs.length ?? 0, stored.churn === undefined ? 0 : stored.demandWps.length],
    ["churn.referenceWps", stored.churn?.referenceWps.length ?? 0, stored.churn?.arcs.length ?? 0],
  ];
  for (const [name, is, needs] of sizes)
    if (is !== needs) throw new GuidevaneError("bad_problem", `${name} has ${is} entries, must have ${needs}`);
  return { problem, stored, priceMs: Float64Array.from(stored.priceMs) };
}

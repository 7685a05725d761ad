import { GuidevaneError } from "@guidevane/core";
import { z } from "zod";
import type { ProblemIndex } from "./build-problem.ts";
import { checkProblem } from "./check-problem.ts";
import type { Problem } from "./problem.ts";

/**
 * `Publication.problem`: the problem that the weights were solved from and the engine prices that make its bound, as
 * plain JSON. Arrays are `Problem`'s columns; a cell's or engine's place in its list is its number there.
 */
const numbers = z.array(z.number());
const counts = z.array(z.int().nonnegative());

export const storedProblemSchema = z.object({
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
    demandWps: [...problem.demandWps],
    arcStart: [...problem.arcStart],
    arcEngine: [...problem.arcEngine],
    arcCostMs: [...problem.arcCostMs],
    capacityWps: [...curves.capacityWps],
    knotStart: [...curves.knotStart],
    knotRho: [...curves.knotRho],
    knotMs: [...curves.knotMs],
    headroom: curves.headroom,
    headroomMs: curves.headroomMs,
    shedMs: [...problem.shedMs],
    shedStepMs: problem.shedStepMs,
    shedSteps: problem.shedSteps,
    priceMs: [...priceMs],
  };
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
  };
  const wrong = checkProblem(problem);
  if (wrong !== null) throw new GuidevaneError("bad_problem", wrong.message);
  const sizes: readonly (readonly [string, number, number])[] = [
    ["cells", stored.cells.length, stored.demandWps.length],
    ["engines", stored.engines.length, stored.capacityWps.length],
    ["priceMs", stored.priceMs.length, stored.capacityWps.length],
  ];
  for (const [name, is, needs] of sizes)
    if (is !== needs) throw new GuidevaneError("bad_problem", `${name} has ${is} entries, must have ${needs}`);
  return { problem, stored, priceMs: Float64Array.from(stored.priceMs) };
}

import { type Problem, type Solution, verifySolution } from "@guidevane/optimizer";

/** What a contestant's answer must come to, whoever gave it. */
export const RIGHT = { isFeasible: true, isNear: true, faults: [] as readonly string[] };

/** Rounding of sums that went through other orders. */
const ROUNDING = 1e-9;
/** HiGHS keeps its rows to 1e-7 of what they hold, in units of its own scaling. */
const FEASIBLE = 1e-6;

/** A solution with a bound of its own: the verifier, which shares no code with the solvers, finds no fault and this gap. */
export function rightWithin(gap: number, problem: Problem, solution: Solution): typeof RIGHT {
  const { faults, objectiveMs, lowerBoundMs } = verifySolution(problem, solution);
  return { ...verdict(gap, problem, { ...solution, objectiveMs, lowerBoundMs }), faults };
}

/** Flows of a solver that proves nothing, judged by a bound from elsewhere. */
export function rightWithinOf(
  gap: number,
  problem: Problem,
  solution: Pick<Solution, "flowWps" | "shedWps" | "loadWps" | "objectiveMs" | "lowerBoundMs">,
): typeof RIGHT {
  return { ...verdict(gap, problem, solution), faults: [] };
}

function verdict(
  gap: number,
  { demandWps, arcStart, curves }: Problem,
  { flowWps, shedWps, loadWps, objectiveMs, lowerBoundMs }: Parameters<typeof rightWithinOf>[2],
) {
  const isServed = demandWps.every((demand, cell) => {
    const row = flowWps.subarray(arcStart[cell], arcStart[cell + 1]);
    const served = row.reduce((sum, flow) => sum + flow, shedWps[cell]!);
    return Math.abs(served - demand) <= FEASIBLE * Math.max(1, demand) && row.every((flow) => flow >= -FEASIBLE);
  });
  const fits = loadWps.every((load, engine) => load <= curves.capacityWps[engine]! * (1 + FEASIBLE));
  const found = (objectiveMs - lowerBoundMs) / lowerBoundMs;
  return { isFeasible: isServed && fits, isNear: found >= -FEASIBLE && found <= gap * (1 + FEASIBLE) + ROUNDING };
}

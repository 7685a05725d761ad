import type { Problem, SolveStatus } from "./problem.ts";

/** What makes a problem unfit to be solved, or null. Solvers answer it as their status and never throw. */
export function checkProblem(problem: Problem): { status: SolveStatus; message: string } | null {
  const { demandWps, arcStart, arcEngine, arcCostMs, curves, shedMs } = problem;
  const cells = demandWps.length;
  const engines = curves.capacityWps.length;
  const lengths: readonly (readonly [string, number, number])[] = [
    ["arcStart", arcStart.length, cells + 1],
    ["arcCostMs", arcCostMs.length, arcEngine.length],
    ["shedMs", shedMs.length, cells],
    ["curves.knotStart", curves.knotStart.length, engines + 1],
    ["curves.knotMs", curves.knotMs.length, curves.knotRho.length],
    ["arcStart's end", arcStart[cells] ?? -1, arcEngine.length],
  ];
  for (const [name, is, needs] of lengths)
    if (is !== needs) return { status: "invalid", message: `${name} is ${is}, must be ${needs}` };
  const columns: readonly (readonly [string, Float64Array])[] = [
    ["demandWps", demandWps],
    ["arcCostMs", arcCostMs],
    ["shedMs", shedMs],
    ["curves.capacityWps", curves.capacityWps],
    ["curves.knotRho", curves.knotRho],
    ["curves.knotMs", curves.knotMs],
    ["headroom, headroomMs, shedStepMs", Float64Array.of(curves.headroom, curves.headroomMs, problem.shedStepMs)],
  ];
  for (const [name, column] of columns) {
    const wrong = notANumber(name, column);
    if (wrong !== null) return wrong;
  }
  if (!Number.isInteger(problem.shedSteps) || problem.shedSteps < 0)
    return { status: "invalid", message: `shedSteps is ${problem.shedSteps}: it must be a whole number of 0 or more` };
  for (let arc = 0; arc < arcEngine.length; arc++)
    if (arcEngine[arc]! >= engines)
      return { status: "invalid", message: `arcEngine[${arc}] is ${arcEngine[arc]}, past ${engines} engines` };
  for (let cell = 0; cell < cells; cell++)
    if (arcStart[cell]! > arcStart[cell + 1]!) return { status: "invalid", message: `arcStart[${cell + 1}] falls` };
  return notConvex(problem);
}

/** The first value of a column that is not a finite number of 0 or more. A loop: the columns have 200,000 entries. */
export function notANumber(name: string, column: Float64Array): { status: SolveStatus; message: string } | null {
  for (let at = 0; at < column.length; at++) {
    const value = column[at]!;
    if (value >= 0 && value < Number.POSITIVE_INFINITY) continue;
    return Number.isFinite(value)
      ? { status: "invalid", message: `${name}[${at}] is ${value}: it must not be negative` }
      : { status: "not-finite", message: `${name}[${at}] is ${value}` };
  }
  return null;
}

/** Rounding of decimal knots must not make a straight line look concave. */
const SLOPE_TOLERANCE = 1e-9;

/** Convexity is an input contract: without it neither the optimum nor the bound holds. */
function notConvex({ curves }: Problem): { status: SolveStatus; message: string } | null {
  for (let engine = 0; engine < curves.capacityWps.length; engine++) {
    const start = curves.knotStart[engine]!;
    const end = curves.knotStart[engine + 1]!;
    if (end <= start || curves.knotRho[start] !== 0)
      return { status: "invalid", message: `engine ${engine}: its curve needs a first knot at utilisation 0` };
    let last = 0;
    for (let knot = start + 1; knot < end; knot++) {
      const run = curves.knotRho[knot]! - curves.knotRho[knot - 1]!;
      const slope = (curves.knotMs[knot]! - curves.knotMs[knot - 1]!) / run;
      if (!(run > 0) || slope < last - SLOPE_TOLERANCE * Math.max(1, last))
        return {
          status: "invalid",
          message: `engine ${engine}: its curve is not convex and rising at knot ${knot - start}`,
        };
      last = Math.max(last, slope);
    }
  }
  return null;
}

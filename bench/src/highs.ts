import { objective, type Problem } from "@guidevane/optimizer";
import library from "highs";

// The package's types describe its CommonJS build; the default export of its ESM build is what they call `default`.
const loadHighs = library as unknown as typeof library.default;

/** What HiGHS (WebAssembly) makes of a problem whose curves are cut into chords. */
export interface HighsSolver {
  /** Only the solver's own work: the model's text is made beforehand, though reading it is in it. */
  solve(): Pick<Found, "flowWps" | "shedWps" | "loadWps">;
  /** The same with its cost on the true curves, ms per second. */
  solveAndPrice(): Found;
}

interface Found {
  readonly flowWps: Float64Array;
  readonly shedWps: Float64Array;
  readonly loadWps: Float64Array;
  readonly objectiveMs: number;
}

/**
 * Chords between knots. With 16 knots this makes about 100 segments an engine; the cost of the programme's optimum on the
 * true curves is then some 1e-5 to 1e-4 above the least.
 */
const CHORDS = 6;

/** Problems without a churn term. Chords are straight in the marginal: each piece's φ comes from its knots and the ramp. */
export async function highsSolver(problem: Problem): Promise<HighsSolver> {
  const highs = await loadHighs();
  const text = linearProgramme(problem);
  const solve = () => {
    const solved = highs.solve(text, { output_flag: false });
    if (solved.Status !== "Optimal") throw new Error(`HiGHS ended with ${solved.Status}`);
    return flowsOf(problem, (name) => solved.Columns[name]?.Primal ?? 0);
  };
  return {
    solve,
    solveAndPrice() {
      const flows = solve();
      return { ...flows, objectiveMs: objective(problem, flows) };
    },
  };
}

function linearProgramme(problem: Problem): string {
  const { demandWps, arcStart, arcEngine, arcCostMs, curves, shedMs, shedStepMs } = problem;
  const cost: string[] = [];
  const rows: string[] = [];
  const bounds: string[] = [];
  const arriving = Array.from(curves.capacityWps, (): string[] => []);
  const steps = Math.max(1, problem.shedSteps);
  for (const [cell, demand] of demandWps.entries()) {
    const terms: string[] = [];
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      cost.push(`${arcCostMs[arc]} z${arc}`);
      terms.push(`z${arc}`);
      arriving[arcEngine[arc]!]!.push(`z${arc}`);
    }
    for (let step = 0; step < steps; step++) {
      cost.push(`${shedMs[cell]! + step * shedStepMs} s${cell}_${step}`);
      terms.push(`s${cell}_${step}`);
      bounds.push(`0 <= s${cell}_${step} <= ${demand / steps}`);
    }
    rows.push(`${terms.join(" + ")} = ${demand}`);
  }
  for (const [engine, flows] of arriving.entries()) {
    if (flows.length === 0) continue;
    const terms = chordsOf(curves, engine).map(({ wps, slopeMs }, at) => {
      cost.push(`${slopeMs} t${engine}_${at}`);
      bounds.push(`0 <= t${engine}_${at} <= ${wps}`);
      return ` - t${engine}_${at}`;
    });
    rows.push(`${flows.join(" + ")}${terms.join("")} = 0`);
  }
  return [
    "Minimize",
    ` obj: ${cost.join(" + ")}`,
    "Subject To",
    ...rows.map((row, at) => ` r${at}: ${row}`),
    "Bounds",
    ...bounds.map((bound) => ` ${bound}`),
    "End",
  ].join("\n");
}

/** Width and slope of the chords of φ(y) = y·Q(y/U) + U·R/(2h)·((y/U − 1 + h)⁺)². */
function chordsOf(curves: Problem["curves"], engine: number): { wps: number; slopeMs: number }[] {
  const capacity = curves.capacityWps[engine]!;
  if (capacity === 0) return [];
  const knots = curves.knotRho.subarray(curves.knotStart[engine], curves.knotStart[engine + 1]);
  const values = curves.knotMs.subarray(curves.knotStart[engine], curves.knotStart[engine + 1]);
  const phi = (rho: number): number => {
    let at = 0;
    while (at + 2 < knots.length && knots[at + 1]! <= rho) at++;
    const rise = knots.length > 1 ? (values[at + 1]! - values[at]!) / (knots[at + 1]! - knots[at]!) : 0;
    const over = curves.headroom > 0 ? Math.max(0, rho - 1 + curves.headroom) : 0;
    const ramp = curves.headroom > 0 ? (curves.headroomMs / (2 * curves.headroom)) * over ** 2 : 0;
    return capacity * (rho * (values[at]! + rise * (rho - knots[at]!)) + ramp);
  };
  const ends = [...new Set([0, ...knots, 1 - curves.headroom, 1])].filter((rho) => rho >= 0 && rho <= 1);
  ends.sort((a, b) => a - b);
  return ends.slice(1).flatMap((end, at) => {
    const from = ends[at]!;
    const width = (end - from) / CHORDS;
    return Array.from({ length: CHORDS }, (_, chord) => ({
      wps: width * capacity,
      slopeMs: (phi(from + (chord + 1) * width) - phi(from + chord * width)) / (width * capacity),
    }));
  });
}

function flowsOf(problem: Problem, primal: (name: string) => number) {
  const flowWps = Float64Array.from(problem.arcEngine, (_, arc) => primal(`z${arc}`));
  const loadWps = new Float64Array(problem.curves.capacityWps.length);
  for (const [arc, engine] of problem.arcEngine.entries()) loadWps[engine] = loadWps[engine]! + flowWps[arc]!;
  const shedWps = Float64Array.from(problem.demandWps, (_, cell) => {
    let shed = 0;
    for (let step = 0; step < Math.max(1, problem.shedSteps); step++) shed += primal(`s${cell}_${step}`);
    return shed;
  });
  return { flowWps, shedWps, loadWps };
}

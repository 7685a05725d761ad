import { evaluateCurves } from "@guidevane/core";
import library from "highs";
import type { Problem } from "./problem.ts";

// The package's types describe its CommonJS build; the default export of its ESM build is what they call `default`.
const loadHighs = library as unknown as typeof library.default;
const highs = await loadHighs();

/** Chords per piece of a curve. */
const CHORDS = 48;

/**
 * The least cost of a problem with every φ replaced by chords between many points of it, by HiGHS, ms per second: at most
 * `errorMs` above the problem's own least cost. φ comes from core's evaluation; nothing of this package takes part.
 */
export function leastCostByHighs(problem: Problem): { costMs: number; errorMs: number } {
  const linear: string[] = [];
  let errorMs = 0;
  const rows: string[] = [];
  const gains: string[] = [];
  const bounds: string[] = [];
  const arriving = new Map<number, string[]>();
  for (const [cell, demand] of problem.demandWps.entries()) {
    const terms: string[] = [];
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      linear.push(`${problem.arcCostMs[arc]} z${arc}`);
      terms.push(`z${arc}`);
      arriving.set(engine, [...(arriving.get(engine) ?? []), `z${arc}`]);
      if (problem.churn === undefined) continue;
      // What is gained over the reference: g ≥ z − ẑ.
      linear.push(`${problem.churn.moveMs[arc]} g${arc}`);
      gains.push(`z${arc} - g${arc} <= ${problem.churn.referenceWps[arc]}`);
    }
    const steps = Math.max(1, problem.shedSteps);
    for (let step = 0; step < steps; step++) {
      linear.push(`${problem.shedMs[cell]! + step * problem.shedStepMs} s${cell}_${step}`);
      terms.push(`s${cell}_${step}`);
      bounds.push(`0 <= s${cell}_${step} <= ${demand / steps}`);
    }
    rows.push(`${terms.join(" + ")} = ${demand}`);
  }
  for (const [engine, flows] of arriving) {
    const terms: string[] = [];
    let widest = 0;
    for (const [piece, { from, to, slope, curvature }] of pieces(problem, engine).entries()) {
      const width = (to - from) / CHORDS;
      widest = Math.max(widest, (curvature * width ** 2) / 8);
      for (let chord = 0; chord < CHORDS; chord++) {
        const name = `t${engine}_${piece}_${chord}`;
        linear.push(`${slope + curvature * width * (chord + 0.5)} ${name}`);
        terms.push(name);
        bounds.push(`0 <= ${name} <= ${width}`);
      }
    }
    errorMs += widest;
    // An engine without capacity takes nothing.
    rows.push(`${flows.join(" + ")}${terms.map((name) => ` - ${name}`).join("")} = 0`);
  }
  const text = [
    "Minimize",
    ` obj: ${linear.join(" + ")}`,
    "Subject To",
    ...[...rows, ...gains].map((row, index) => ` r${index}: ${row}`),
    "Bounds",
    ...bounds.map((bound) => ` ${bound}`),
    "End",
  ].join("\n");
  const solved = highs.solve(text, { output_flag: false });
  if (solved.Status !== "Optimal") throw new Error(`HiGHS ended with ${solved.Status}`);
  return { costMs: solved.ObjectiveValue, errorMs };
}

function pieces({ curves }: Problem, engine: number) {
  const capacity = curves.capacityWps[engine]!;
  if (capacity === 0) return [];
  const knots = curves.knotRho.subarray(curves.knotStart[engine], curves.knotStart[engine + 1]);
  const all = [...knots, 0, 1 - curves.headroom, 1].filter((rho) => rho >= 0 && rho <= 1).sort((a, b) => a - b);
  const rhos = all.filter((rho, index) => index === 0 || rho > all[index - 1]!);
  return rhos.slice(1).map((rho, index) => {
    const from = rhos[index]! * capacity;
    const to = rho * capacity;
    // In the middle, where no rounding of a breakpoint decides which side is meant; φ′ is linear on the piece.
    const { slope, curvature } = evaluateOne(curves, engine, (from + to) / 2);
    return { from, to, slope: slope - (curvature * (to - from)) / 2, curvature };
  });
}

function evaluateOne(curves: Problem["curves"], engine: number, loadWps: number) {
  const columns = Array.from({ length: 3 }, () => new Float64Array(curves.capacityWps.length));
  const out = { value: columns[0]!, slope: columns[1]!, curvature: columns[2]! };
  evaluateCurves(curves, new Float64Array(curves.capacityWps.length).fill(loadWps), out);
  return { slope: out.slope[engine]!, curvature: out.curvature[engine]! };
}

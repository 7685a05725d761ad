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
  return solveLinear(problem, CHORDS, chordsOf);
}

/** Least costs between which a problem's own lies: with its φ by tangents, which lie below it, and by chords, above. */
export function squeezeByHighs(problem: Problem, perPiece: number): { lowMs: number; highMs: number } {
  return {
    lowMs: solveLinear(problem, perPiece, tangentsOf).costMs,
    highMs: solveLinear(problem, perPiece, chordsOf).costMs,
  };
}

interface Piece {
  readonly from: number;
  readonly to: number;
  /** φ′ at `from`, ms per unit of work; it rises by `curvature` per unit. */
  readonly slope: number;
  readonly curvature: number;
}

type Segments = (piece: Piece, count: number) => { wps: number; slopeMs: number }[];

/** A parabola's chord is as steep as its middle. */
const chordsOf: Segments = ({ from, to, slope, curvature }, count) => {
  const wps = (to - from) / count;
  return Array.from({ length: count }, (_, at) => ({ wps, slopeMs: slope + curvature * wps * (at + 0.5) }));
};

/** Tangents at both ends and between; neighbours meet halfway. */
const tangentsOf: Segments = ({ from, to, slope, curvature }, count) => {
  const step = (to - from) / count;
  return Array.from({ length: count + 1 }, (_, at) => ({
    wps: at === 0 || at === count ? step / 2 : step,
    slopeMs: slope + curvature * step * at,
  }));
};

function solveLinear(problem: Problem, perPiece: number, segmentsOf: Segments): { costMs: number; errorMs: number } {
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
    for (const [number, piece] of pieces(problem, engine).entries()) {
      widest = Math.max(widest, (piece.curvature * ((piece.to - piece.from) / perPiece) ** 2) / 8);
      for (const [at, { wps, slopeMs }] of segmentsOf(piece, perPiece).entries()) {
        const name = `t${engine}_${number}_${at}`;
        linear.push(`${slopeMs} ${name}`);
        terms.push(name);
        bounds.push(`0 <= ${name} <= ${wps}`);
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

function pieces({ curves }: Problem, engine: number): Piece[] {
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

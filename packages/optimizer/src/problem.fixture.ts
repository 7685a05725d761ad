import type { Knots, Random } from "@guidevane/core";
import type { Problem } from "./problem.ts";

export interface ProblemSpec {
  /** Work units/s, one per cell. */
  readonly demand: readonly number[];
  /** Per cell and engine, ms per unit of work; null = not eligible. */
  readonly cost: readonly (readonly (number | null)[])[];
  readonly capacity: readonly number[];
  /** Q of each engine; one curve = the same for all. */
  readonly curves: readonly Knots[];
  readonly headroom?: number;
  readonly headroomMs?: number;
  readonly shedMs?: readonly number[];
  readonly shedStepMs?: number;
  readonly shedSteps?: number;
}

export function makeProblem(spec: ProblemSpec): Problem {
  const arcStart = [0];
  const arcEngine: number[] = [];
  const arcCostMs: number[] = [];
  for (const row of spec.cost) {
    for (const [engine, cost] of row.entries()) {
      if (cost === null) continue;
      arcEngine.push(engine);
      arcCostMs.push(cost);
    }
    arcStart.push(arcEngine.length);
  }
  const curves = spec.capacity.map((_, engine) => spec.curves[engine] ?? spec.curves[0]!);
  const knotStart = [0];
  for (const knots of curves) knotStart.push(knotStart.at(-1)! + knots.length);
  return {
    demandWps: Float64Array.from(spec.demand),
    arcStart: Uint32Array.from(arcStart),
    arcEngine: Uint32Array.from(arcEngine),
    arcCostMs: Float64Array.from(arcCostMs),
    curves: {
      capacityWps: Float64Array.from(spec.capacity),
      knotStart: Uint32Array.from(knotStart),
      knotRho: Float64Array.from(curves.flat().map(([rho]) => rho)),
      knotMs: Float64Array.from(curves.flat().map(([, ms]) => ms)),
      headroom: spec.headroom ?? 0,
      headroomMs: spec.headroomMs ?? 0,
    },
    shedMs: Float64Array.from(spec.shedMs ?? spec.demand.map(() => 60_000)),
    shedStepMs: spec.shedStepMs ?? 0,
    shedSteps: spec.shedSteps ?? 0,
  };
}

/** The three-cluster example's curve, TTFT + tokens × TBOT less its unloaded 200 ms. */
export const EXAMPLE_CURVE: Knots = [
  [0, 0],
  [0.7, 20],
  [0.85, 100],
  [0.95, 300],
  [1, 700],
];

/** Round trips a–b 80, b–c 60, a–c 140, own 2, and 200 ms of service. */
export const EXAMPLE_COST: readonly (readonly number[])[] = [
  [202, 280, 340],
  [280, 202, 260],
  [340, 260, 202],
];

/**
 * A random instance: curves with 1 … 6 knots, engines twice as large as others, some without capacity, cells that few or
 * no engines may serve, some without demand; `utilisation` of the fleet's capacity in all, at which some part sheds.
 */
export function randomProblem(random: Random, cells: number, engines: number, utilisation: number): Problem {
  const capacity = Array.from({ length: engines }, () => (random() < 0.1 ? 0 : 10 + 90 * random()));
  const raw = Array.from({ length: cells }, () => (random() < 0.1 ? 0 : random() ** 2));
  const scale =
    (utilisation * capacity.reduce((a, b) => a + b, 0)) /
    Math.max(
      1e-9,
      raw.reduce((a, b) => a + b, 0),
    );
  const base = 20_000 + 40_000 * random();
  return makeProblem({
    demand: raw.map((demand) => demand * scale),
    cost: raw.map(() => capacity.map(() => (random() < 0.3 ? null : Math.round(400 * random())))),
    capacity,
    curves: capacity.map(() => randomCurve(random)),
    headroom: random() < 0.3 ? 0 : 0.06,
    headroomMs: 6000,
    shedMs: raw.map(() => base * (1 + Math.floor(3 * random()))),
    shedStepMs: random() < 0.5 ? 0 : 300,
    shedSteps: 20,
  });
}

function randomCurve(random: Random): Knots {
  const knots: [number, number][] = [[0, 0]];
  let slope = 100 * random();
  for (let knot = Math.floor(6 * random()); knot > 0; knot--) {
    const [rho, ms] = knots.at(-1)!;
    const run = (1 - rho) * (0.2 + 0.7 * random());
    knots.push([rho + run, ms + slope * run]);
    slope *= 1 + 2 * random();
  }
  return knots;
}

import { type Random, seededRandom } from "@guidevane/core";
import type { Problem, Solution } from "../problem.ts";

/**
 * Small problems that have everything that can go wrong: equal costs, flat curves, knots, curves that shoot up at the
 * capacity, cells without an arc or without demand, engines without capacity, three times too much demand, none at all,
 * scales from 10⁻⁴ to 10⁴, and, where asked, churn references that fit the demand or don't.
 */
export function oddProblem(
  seed: number,
  withChurn = false,
  most: { cells: number; engines: number } = { cells: 12, engines: 9 },
): Problem {
  const random = seededRandom(seed);
  const chance = (p: number): boolean => random() < p;
  const cells = Math.floor(random() * (most.cells + 1));
  const engines = Math.floor(random() * (most.engines + 1));
  const scale = 10 ** (8 * random() - 4);
  const allEqual = chance(0.2);
  const roundCosts = chance(0.3);
  const density = 0.1 + 0.9 * random();

  const capacityWps = new Float64Array(engines);
  const knotStart = new Uint32Array(engines + 1);
  const knotRho: number[] = [];
  const knotMs: number[] = [];
  let capacity = 0;
  for (let engine = 0; engine < engines; engine++) {
    capacityWps[engine] = chance(0.1) ? 0 : scale * (allEqual ? 10 : 1 + 20 * random());
    if (chance(0.02)) capacityWps[engine] = scale * 1e-9;
    capacity += capacityWps[engine]!;
    for (const [rho, ms] of oddCurve(random, allEqual)) {
      knotRho.push(rho);
      knotMs.push(ms);
    }
    knotStart[engine + 1] = knotRho.length;
  }

  const arcStart = new Uint32Array(cells + 1);
  const arcEngine: number[] = [];
  const arcCostMs: number[] = [];
  const demandWps = new Float64Array(cells);
  let demand = 0;
  for (let cell = 0; cell < cells; cell++) {
    for (let engine = 0; engine < engines; engine++) {
      if (!chance(density)) continue;
      arcEngine.push(engine);
      arcCostMs.push(allEqual ? 50 : roundCosts ? 10 * Math.floor(20 * random()) : 200 * random());
    }
    arcStart[cell + 1] = arcEngine.length;
    demandWps[cell] = chance(0.15) ? 0 : Math.exp(3 * random());
    demand += demandWps[cell]!;
  }
  const utilisation = chance(0.05) ? 0 : chance(0.2) ? 3 * random() : chance(0.1) ? 1 : 0.3 + 0.7 * random();
  const factor = demand > 0 && capacity > 0 ? (utilisation * capacity) / demand : scale;
  for (let cell = 0; cell < cells; cell++) demandWps[cell] = demandWps[cell]! * factor;

  const ramp = chance(0.5);
  const steps = chance(0.7) ? 20 : 0;
  const problem: Problem = {
    demandWps,
    arcStart,
    arcEngine: Uint32Array.from(arcEngine),
    arcCostMs: Float64Array.from(arcCostMs),
    curves: {
      capacityWps,
      knotStart,
      knotRho: Float64Array.from(knotRho),
      knotMs: Float64Array.from(knotMs),
      headroom: ramp ? 0.06 : 0,
      headroomMs: ramp ? 6000 : 0,
    },
    shedMs: Float64Array.from(demandWps, () => (chance(0.05) ? 100 : 60_000 * (1 + Math.floor(3 * random())))),
    shedStepMs: steps > 0 ? 300 : 0,
    shedSteps: steps,
  };
  return withChurn ? { ...problem, churn: oddChurn(problem, random) } : problem;
}

function oddCurve(random: Random, plain: boolean): [number, number][] {
  const kind = plain ? 0.5 : random();
  if (kind < 0.1) return [[0, 0]];
  if (kind < 0.2) return [[0, 100 * random()]];
  if (kind < 0.3)
    return [
      [0, 20],
      [0.5, 20],
      [0.9, 60],
    ];
  const knots = 2 + Math.floor(8 * random());
  const power = 1 + Math.floor(4 * random());
  const pole = 1.0005 + 0.1 * random();
  return Array.from({ length: knots }, (_, i) => {
    const rho = i / (knots - 1);
    return [rho, kind < 0.6 ? 300 * rho ** power : (100 * rho ** power) / (pole - rho)];
  });
}

/** References: a part of each cell's demand on a few of its arcs, now and then more than all of it. */
function oddChurn(problem: Problem, random: Random): NonNullable<Problem["churn"]> {
  const arcs = problem.arcEngine.length;
  const referenceWps = new Float64Array(arcs);
  const moveMs = new Float64Array(arcs);
  const flat = random() < 0.5;
  const total = random() < 0.2 ? 2 * random() : 1;
  for (let cell = 0; cell < problem.demandWps.length; cell++) {
    const start = problem.arcStart[cell]!;
    const end = problem.arcStart[cell + 1]!;
    let left = total * problem.demandWps[cell]!;
    const price = flat ? 1 : 200 * random();
    for (let arc = start; arc < end; arc++) {
      moveMs[arc] = price;
      if (random() < 0.5) continue;
      const part = random() < 0.3 ? left : left * random();
      referenceWps[arc] = part;
      left -= part;
    }
  }
  return { referenceWps, moveMs };
}

/**
 * What the next tick may bring: noise of 2 or 50 %, a surge, cells that fall silent or wake, an engine lost or come back,
 * arcs that vanish. With churn the reference is the weights of `solution` times the new demand.
 */
export function nextProblem(problem: Problem, solution: Solution, random: Random): Problem {
  const kind = random();
  const busiest = problem.demandWps.reduce((most, value) => Math.max(most, value), 0);
  const demandWps = problem.demandWps.map((demand) => {
    if (kind < 0.2 && random() < 0.2) return 0;
    if (kind < 0.3) return demand * 1.5 * random();
    if (kind < 0.5 && demand === 0 && random() < 0.3) return busiest * random();
    return demand * (1 + (kind < 0.7 ? 0.02 : 0.5) * (2 * random() - 1));
  });
  const capacityWps = problem.curves.capacityWps.slice();
  if (random() < 0.4 && capacityWps.length > 0) {
    const engine = Math.floor(random() * capacityWps.length);
    capacityWps[engine] = capacityWps[engine]! > 0 ? 0 : capacityWps.reduce((most, value) => Math.max(most, value), 0);
  }
  const loses = random() < 0.2;
  const cells = demandWps.length;
  const arcStart = new Uint32Array(cells + 1);
  const kept: number[] = [];
  for (let cell = 0; cell < cells; cell++) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      if (!loses || random() < 0.85) kept.push(arc);
    arcStart[cell + 1] = kept.length;
  }
  const { churn: before, ...rest } = problem;
  const next: Problem = {
    ...rest,
    demandWps,
    arcStart,
    arcEngine: Uint32Array.from(kept, (arc) => problem.arcEngine[arc]!),
    arcCostMs: Float64Array.from(kept, (arc) => problem.arcCostMs[arc]!),
    curves: { ...problem.curves, capacityWps },
  };
  if (before === undefined) return next;
  const referenceWps = new Float64Array(kept.length);
  for (let cell = 0; cell < cells; cell++) {
    const demand = problem.demandWps[cell]!;
    if (!(demand > 0)) continue;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++)
      referenceWps[arc] = (solution.flowWps[kept[arc]!]! / demand) * demandWps[cell]!;
  }
  return { ...next, churn: { referenceWps, moveMs: Float64Array.from(kept, (arc) => before.moveMs[arc]!) } };
}

import { lowerBound, objective, splitGap } from "./bound.ts";
import type { Problem, Solution } from "./problem.ts";
import { shedPrice } from "./shed.ts";

/** What an independent look at a solution found. */
export interface SolutionCheck {
  /** A sentence each; none = the solution is feasible, costs what it says, and is as close to the optimum as it says. */
  readonly faults: readonly string[];
  /** Recomputed, ms per second. */
  readonly objectiveMs: number;
  readonly lowerBoundMs: number;
  /** Recomputed F − LB by where it arises, ms per second; null with a churn term, whose parts are not split. */
  readonly split: { readonly arcsMs: number; readonly shedMs: number; readonly enginesMs: number } | null;
}

/** Figures are doubles that went through other orders of summation. */
const CLOSE = 1e-9;

/**
 * Recomputes what a solution claims from its flows and its engine prices alone, in code that no solver uses:
 * conservation, capacity, cost, and the lower bound by weak duality. A bound is a proof whatever prices it is made from,
 * so a claim is right when it is not above the bound found here.
 */
export function verifySolution(
  problem: Problem,
  solution: Pick<Solution, "flowWps" | "shedWps" | "loadWps" | "priceMs" | "objectiveMs" | "lowerBoundMs">,
): SolutionCheck {
  const faults: string[] = [];
  checkFlows(problem, solution, faults);
  const { churn, ...plain } = problem;
  const objectiveMs = objective(plain, solution) + (churn === undefined ? 0 : moveCost(churn, solution.flowWps));
  const lowerBoundMs =
    churn === undefined ? lowerBound(plain, solution.priceMs).lowerBoundMs : churnBound(plain, churn, solution.priceMs);
  const slack = CLOSE * Math.max(1e-3, Math.abs(objectiveMs));
  const expect = (holds: boolean, says: string): void => {
    // A figure that is not a number makes every comparison false, and so is a fault.
    if (!holds) faults.push(says);
  };
  expect(
    Math.abs(objectiveMs - solution.objectiveMs) <= slack,
    `the cost is ${objectiveMs} ms/s, not ${solution.objectiveMs}`,
  );
  expect(
    solution.lowerBoundMs <= lowerBoundMs + slack,
    `the prices prove a bound of ${lowerBoundMs} ms/s, not ${solution.lowerBoundMs}`,
  );
  expect(lowerBoundMs <= objectiveMs + slack, `the bound ${lowerBoundMs} is above the cost ${objectiveMs}`);
  const split = churn === undefined ? splitOf(plain, solution, slack, faults) : null;
  return { faults, objectiveMs, lowerBoundMs, split };
}

function checkFlows(problem: Problem, solution: Pick<Solution, "flowWps" | "shedWps" | "loadWps">, faults: string[]) {
  const { demandWps, arcStart, arcEngine, curves } = problem;
  const loads = new Float64Array(curves.capacityWps.length);
  for (const [cell, demand] of demandWps.entries()) {
    const shed = solution.shedWps[cell]!;
    let sum = shed;
    if (!(shed >= 0)) faults.push(`cell ${cell}: ${shed} units/s shed`);
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      const flow = solution.flowWps[arc]!;
      if (!(flow >= 0)) faults.push(`cell ${cell}: ${flow} units/s to engine ${arcEngine[arc]}`);
      sum += flow;
      loads[arcEngine[arc]!]! += flow;
    }
    if (!(Math.abs(sum - demand) <= CLOSE * demand))
      faults.push(`cell ${cell}: ${sum} of ${demand} units/s routed or shed`);
  }
  for (const [engine, load] of loads.entries()) {
    const capacity = curves.capacityWps[engine]!;
    if (!(load <= capacity * (1 + CLOSE)))
      faults.push(`engine ${engine}: ${load} units/s on a capacity of ${capacity}`);
    if (!(Math.abs(load - solution.loadWps[engine]!) <= CLOSE * Math.max(1e-6, capacity)))
      faults.push(`engine ${engine}: its flows sum to ${load} units/s, not ${solution.loadWps[engine]}`);
  }
}

type Churn = NonNullable<Problem["churn"]>;

/** Σ m·(z − ẑ)⁺, ms per second. */
function moveCost({ referenceWps, moveMs }: Churn, flowWps: Float64Array): number {
  return flowWps.reduce((sum, flow, arc) => sum + moveMs[arc]! * Math.max(0, flow - referenceWps[arc]!), 0);
}

/**
 * With churn, for any π_k ≤ min_e(c + m + w): LB = Σ_k [(d/J)·Σ_j min(p_j, π) + Σ_e ẑ·min(0, c + w − π)] − Σ_e φ*(w). The
 * bracket is concave in π and bends only at shed prices and at c + w of arcs with a reference: the best of those is taken.
 */
function churnBound(plain: Problem, { referenceWps, moveMs }: Churn, priceMs: Float64Array): number {
  const dear = { ...plain, arcCostMs: plain.arcCostMs.map((cost, arc) => cost + moveMs[arc]!) };
  // Of the dearer arcs: Σ_k priced(least c + m + w) − Σ_e φ*(w).
  const most = lowerBound(dear, priceMs);
  let total = most.lowerBoundMs;
  for (const [cell, demand] of plain.demandWps.entries()) {
    const steps = Array.from({ length: Math.max(1, plain.shedSteps) }, (_, step) =>
      shedPrice(plain, cell, step / Math.max(1, plain.shedSteps)),
    );
    const priced = (pi: number) => (demand / steps.length) * steps.reduce((sum, step) => sum + Math.min(step, pi), 0);
    const held: { through: number; reference: number }[] = [];
    for (let arc = plain.arcStart[cell]!; arc < plain.arcStart[cell + 1]!; arc++) {
      const engine = plain.arcEngine[arc]!;
      if (!(referenceWps[arc]! > 0) || !(plain.curves.capacityWps[engine]! > 0)) continue;
      held.push({ through: plain.arcCostMs[arc]! + priceMs[engine]!, reference: referenceWps[arc]! });
    }
    const cap = Math.min(most.demandPriceMs[cell]!, steps.at(-1)!);
    const bends = [cap, ...steps, ...held.map(({ through }) => through)].filter((pi) => pi <= cap);
    const values = bends.map((pi) =>
      held.reduce((sum, { through, reference }) => sum + reference * Math.min(0, through - pi), priced(pi)),
    );
    total += Math.max(...values) - priced(cap);
  }
  return total;
}

/** No part of the gap is negative, and they sum to the whole. */
function splitOf(
  problem: Problem,
  solution: Pick<Solution, "flowWps" | "shedWps" | "loadWps" | "priceMs">,
  slack: number,
  faults: string[],
): NonNullable<SolutionCheck["split"]> {
  const split = splitGap(problem, solution, solution.priceMs);
  const sum = (name: string, parts: Float64Array): number => {
    const at = parts.findIndex((part) => !(part >= -slack));
    if (at >= 0) faults.push(`the part of ${name} ${at} in the gap is ${parts[at]} ms/s`);
    return parts.reduce((total, part) => total + part, 0);
  };
  const [arcsMs, shedMs, enginesMs] = [
    sum("arc", split.arcMs),
    sum("cell", split.shedMs),
    sum("engine", split.engineMs),
  ];
  const whole = split.objectiveMs - split.lowerBoundMs;
  if (!(Math.abs(arcsMs + shedMs + enginesMs - whole) <= slack))
    faults.push(`the gap's parts sum to ${arcsMs + shedMs + enginesMs} ms/s, not ${whole}`);
  return { arcsMs, shedMs, enginesMs };
}

import { lowerBound, objective } from "../bound.ts";
import { conjugate, costAt } from "../engine-cost.ts";
import type { Problem } from "../problem.ts";
import { shedCost, shedPrice } from "../shed.ts";
import type { SimplexSolution } from "./solve.ts";

/** Everything wrong with a solution, judged by the package's own certificate, which shares no code with the solver. */
export function faultsOf(problem: Problem, solution: SimplexSolution): string[] {
  const found: string[] = [];
  if (solution.status !== "solved") found.push(`${solution.status}: ${solution.message}`);
  const engines = problem.curves.capacityWps.length;
  const load = new Float64Array(engines);
  const all = problem.demandWps.reduce((sum, value) => sum + value, 0);
  for (const [cell, demand] of problem.demandWps.entries()) {
    let sum = solution.shedWps[cell]!;
    if (!(sum >= 0)) found.push(`cell ${cell} sheds ${sum}`);
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const flow = solution.flowWps[arc]!;
      if (!(flow >= 0)) found.push(`arc ${arc} carries ${flow}`);
      sum += flow;
      load[problem.arcEngine[arc]!] = load[problem.arcEngine[arc]!]! + flow;
    }
    if (Math.abs(sum - demand) > 4 * Number.EPSILON * Math.max(sum, demand))
      found.push(`cell ${cell}: ${sum} of ${demand}`);
  }
  for (let engine = 0; engine < engines; engine++) {
    const capacity = problem.curves.capacityWps[engine]!;
    if (load[engine]! > capacity * (1 + 8 * Number.EPSILON))
      found.push(`engine ${engine}: ${load[engine]} on ${capacity}`);
  }
  const cost = problem.churn === undefined ? objective(problem, solution) : objectiveWithChurn(problem, solution);
  const bound =
    problem.churn === undefined
      ? lowerBound(problem, solution.priceMs).lowerBoundMs
      : boundWithChurn(problem, solution.priceMs);
  // Beside the relative gap 10⁻⁸ ms on every unit of demand, for problems whose optimum costs nothing.
  const gap = cost - bound;
  if (!(gap <= 1e-6 * Math.abs(bound) + 1e-8 * all && gap >= -1e-10 * Math.abs(bound) - 1e-8 * all))
    found.push(`gap ${gap}: ${cost} over ${bound}`);
  if (Math.abs(cost - solution.objectiveMs) > 1e-10 * Math.abs(cost))
    found.push(`cost ${solution.objectiveMs}, is ${cost}`);
  return found;
}

function objectiveWithChurn(problem: Problem, { flowWps, shedWps, loadWps }: SimplexSolution): number {
  let total = 0;
  for (const [arc, flow] of flowWps.entries())
    total +=
      problem.arcCostMs[arc]! * flow +
      problem.churn!.moveMs[arc]! * Math.max(0, flow - problem.churn!.referenceWps[arc]!);
  for (const [engine, load] of loadWps.entries()) total += costAt(problem.curves, engine, load);
  for (const [cell, shed] of shedWps.entries()) total += shedCost(problem, cell, shed);
  return total;
}

/** The largest bound that these prices give: π tried at every place where the bound bends. */
function boundWithChurn(problem: Problem, priceMs: Float64Array): number {
  let total = 0;
  const steps = Math.max(1, problem.shedSteps);
  for (const [cell, demand] of problem.demandWps.entries()) {
    const arcs: { at: number; reference: number }[] = [];
    let most = Number.POSITIVE_INFINITY;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      if (!(problem.curves.capacityWps[engine]! > 0)) continue;
      const at = problem.arcCostMs[arc]! + priceMs[engine]!;
      most = Math.min(most, at + problem.churn!.moveMs[arc]!);
      arcs.push({ at, reference: problem.churn!.referenceWps[arc]! });
    }
    const sheds = Array.from({ length: steps }, (_, step) => shedPrice(problem, cell, step / steps));
    const bends = [most, ...arcs.map(({ at }) => at), ...sheds].filter((pi) => pi <= most && Number.isFinite(pi));
    total += Math.max(
      ...bends.map((pi) => {
        const priced = (demand / steps) * sheds.reduce((sum, price) => sum + Math.min(price, pi), 0);
        return priced + arcs.reduce((sum, { at, reference }) => sum + reference * Math.min(0, at - pi), 0);
      }),
    );
  }
  for (const [engine, price] of priceMs.entries()) total -= conjugate(problem.curves, engine, price);
  return total;
}

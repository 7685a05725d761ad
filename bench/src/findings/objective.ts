import { type Fleet, valueAt } from "@guidevane/core";
import { buildProblem, cellKey, objective, type PlanInputs } from "@guidevane/optimizer";
import { POLICIES } from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { combinations, named, printTable } from "./show.ts";
import { atLoad, publishedWeights } from "./weights.ts";

const LOADS = [0.5, 0.6, 0.7, 0.8, 0.85, 0.92];
const BASELINES = ["capacity-proportional", "waterfall", "equal-latency", "static-ring", "nearest-only", "hash-only"];

/**
 * Every policy that publishes weights, on the model itself: what its weights cost by the plan's own objective, and the mean
 * latency that the profiles give for them, each ÷ the plan's. The best of each policy's grid at each load, by the measure
 * shown, so that no baseline suffers from its settings.
 */
export async function objectiveFinding(): Promise<void> {
  const lab = await labFleetFile();
  for (const measure of ["objective", "meanMs"] as const) {
    const rows = LOADS.map((load) => {
      const fleet = atLoad(lab, load);
      const plan = costOf(fleet, "guidevane", {});
      const cells = BASELINES.map((name) => {
        const best = Math.min(
          ...combinations(named(POLICIES, name).grid).map((values) => costOf(fleet, name, values)[measure]),
        );
        return Number.isFinite(best) ? (best / plan[measure]).toFixed(3) : "overload";
      });
      return [load.toFixed(2), plan.meanMs.toFixed(0), ...cells];
    });
    const title =
      measure === "objective" ? "by the plan's objective, ÷ the plan's" : "by mean latency per request, ÷ the plan's";
    printTable(title, ["load", "plan's mean, ms", ...BASELINES], rows);
  }
}

function costOf(fleet: Fleet, policy: string, values: Record<string, number>): { objective: number; meanMs: number } {
  const weights = publishedWeights(fleet, named(POLICIES, policy), values);
  const clusters = [...fleet.clusters.keys()];
  const classes = [...fleet.classes.keys()];
  const engineAt = new Map([...fleet.engines.keys()].map((id, at) => [id, at]));
  const inputs: PlanInputs = {
    wallMs: 0,
    fleet,
    demandRps: new Map(
      [...fleet.demandRps].flatMap(([cluster, byClass]) =>
        [...byClass].map(([name, rps]) => [cellKey(cluster, name), rps] as const),
      ),
    ),
    engines: new Map(),
    gateways: new Map(),
  };
  const built = buildProblem(inputs);
  if (!built.ok) throw new Error(built.message);
  const { problem, index } = built;
  const flowWps = new Float64Array(problem.arcEngine.length);
  const loadWps = new Float64Array(index.engines.length);
  for (const [cell, { cluster, spec }] of index.cells.entries()) {
    const of = weights.get(classes.indexOf(spec.name) * clusters.length + clusters.indexOf(cluster.name))!;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      flowWps[arc] = problem.demandWps[cell]! * of[engineAt.get(index.engines[engine]!.spec.id)!]!;
      loadWps[engine]! += flowWps[arc]!;
    }
  }
  if (loadWps.some((load, engine) => load > problem.curves.capacityWps[engine]!))
    return { objective: Number.POSITIVE_INFINITY, meanMs: Number.POSITIVE_INFINITY };
  const shedWps = new Float64Array(index.cells.length);
  let sum = 0;
  let requests = 0;
  for (const [cell, { spec }] of index.cells.entries()) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      const { profile } = index.engines[engine]!;
      const rho = loadWps[engine]! / problem.curves.capacityWps[engine]!;
      const addedMs =
        valueAt(profile.ttftMs, rho) -
        valueAt(profile.ttftMs, 0) +
        spec.outputTokens * (valueAt(profile.tbotMs, rho) - valueAt(profile.tbotMs, 0));
      const rps = flowWps[arc]! / spec.work;
      sum += rps * (index.arcRttMs[arc]! + index.arcServiceMs[arc]! + addedMs);
      requests += rps;
    }
  }
  return { objective: objective(problem, { flowWps, shedWps, loadWps }), meanMs: sum / requests };
}

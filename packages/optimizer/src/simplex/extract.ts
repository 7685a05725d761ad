import type { Problem, Solution } from "../problem.ts";
import { engineCost, shedCost } from "./certificate.ts";
import type { Network } from "./network.ts";

/** Flows in work units/s from quanta, with what was rounded up taken off again, and what they cost. */
export function extract(
  network: Network,
  problem: Problem,
): Pick<Solution, "flowWps" | "shedWps" | "loadWps" | "objectiveMs"> {
  const { cells, engines, root, scale, tree, churn, arcStart, arcNode, arcCell, sink } = network;
  const flow = new Float64Array(problem.arcEngine.length);
  for (let node = 0; node < root; node++) if (tree.arc[node]! >= 0) flow[tree.arc[node]!] = tree.flow[node]!;
  if (churn !== null) {
    for (let arc = 0; arc < flow.length; arc++) {
      if (churn.beyond[arc] === 0 || churn.reference[arc] === 0) continue;
      if (tree.arc[arcCell[arc]!] === arc || tree.arc[arcNode[arc]!] === arc) continue;
      flow[arc] = churn.reference[arc]!;
    }
  }
  const shed = sink.slice(0, cells);
  const load = sink.slice(cells);
  unload(network, flow, shed, load);
  for (let cell = 0; cell < cells; cell++) {
    // Demand was rounded up by less than one quantum: off the shed where there is one, else off the largest flow.
    const surplus = network.demand[cell]! - network.demandExact[cell]!;
    if (!(surplus > 0)) continue;
    if (shed[cell]! > 0) {
      shed[cell] = shed[cell]! - surplus;
      continue;
    }
    let largest = -1;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++)
      if (largest < 0 || flow[arc]! > flow[largest]!) largest = arc;
    if (largest < 0) continue;
    flow[largest] = flow[largest]! - surplus;
    const engine = arcNode[largest]! - cells;
    load[engine] = load[engine]! - surplus;
  }
  let cost = 0;
  for (let arc = 0; arc < flow.length; arc++) {
    if (flow[arc] === 0) continue;
    cost += network.arcBase[arc]! * flow[arc]!;
    if (churn !== null && flow[arc]! > churn.referenceExact[arc]!)
      cost += churn.moveMs[arc]! * (flow[arc]! - churn.referenceExact[arc]!);
  }
  for (let cell = 0; cell < cells; cell++) cost += shedCost(network, cell, shed[cell]!);
  for (let engine = 0; engine < engines; engine++) cost += engineCost(network, engine, load[engine]!);
  return {
    flowWps: flow.map((value) => value / scale),
    shedWps: shed.map((value) => value / scale),
    loadWps: load.map((value) => value / scale),
    objectiveMs: cost / scale,
  };
}

/** Load beyond a capacity, which a solve stopped early can leave, is shed: what goes out is always feasible. */
function unload(network: Network, flow: Float64Array, shed: Float64Array, load: Float64Array): void {
  const { cells, capacity, arcNode, arcCell } = network;
  for (let arc = 0; arc < flow.length; arc++) {
    const engine = arcNode[arc]! - cells;
    const over = Math.min(flow[arc]!, load[engine]! - capacity[engine]!);
    if (!(over > 0)) continue;
    flow[arc] = flow[arc]! - over;
    load[engine] = load[engine]! - over;
    shed[arcCell[arc]!] = shed[arcCell[arc]!]! + over;
  }
}

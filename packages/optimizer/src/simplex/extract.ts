import type { Problem, Solution } from "../problem.ts";
import { engineCost, shedCost } from "./certificate.ts";
import type { Network } from "./network.ts";

/**
 * Flows in work units/s from quanta, with what was rounded up taken off again, and what they cost.
 *
 * Only arcs that carry something are looked at: those of the tree and those that rest at their reference.
 */
export function extract(
  network: Network,
  problem: Problem,
): Pick<Solution, "flowWps" | "shedWps" | "loadWps" | "objectiveMs"> {
  const { cells, engines, root, scale, tree, churn, arcNode, arcCell, sink } = network;
  const flow = new Float64Array(problem.arcEngine.length);
  const carrying: number[] = [];
  for (let node = 0; node < root; node++) {
    if (tree.arc[node]! < 0 || !(tree.flow[node]! > 0)) continue;
    flow[tree.arc[node]!] = tree.flow[node]!;
    carrying.push(tree.arc[node]!);
  }
  if (churn !== null) {
    for (let arc = 0; arc < flow.length; arc++) {
      if (churn.beyond[arc] === 0 || churn.reference[arc] === 0) continue;
      if (tree.arc[arcCell[arc]!] === arc || tree.arc[arcNode[arc]!] === arc) continue;
      flow[arc] = churn.reference[arc]!;
      carrying.push(arc);
    }
  }
  const shed = sink.slice(0, cells);
  const load = sink.slice(cells);
  const largest = new Int32Array(cells).fill(-1);
  for (const arc of carrying) {
    const cell = arcCell[arc]!;
    // Load beyond a capacity, which a solve stopped early can leave, is shed: what goes out is always feasible.
    const engine = arcNode[arc]! - cells;
    const over = Math.min(flow[arc]!, load[engine]! - network.capacity[engine]!);
    if (over > 0) {
      flow[arc] = flow[arc]! - over;
      load[engine] = load[engine]! - over;
      shed[cell] = shed[cell]! + over;
    }
    if (largest[cell]! < 0 || flow[arc]! > flow[largest[cell]!]!) largest[cell] = arc;
  }
  for (let cell = 0; cell < cells; cell++) {
    // Demand was rounded up by less than one quantum: off the shed where there is one, else off the largest flow.
    const surplus = network.demand[cell]! - network.demandExact[cell]!;
    if (!(surplus > 0)) continue;
    if (shed[cell]! > 0) {
      shed[cell] = shed[cell]! - surplus;
      continue;
    }
    const arc = largest[cell]!;
    if (arc < 0) continue;
    flow[arc] = flow[arc]! - surplus;
    const engine = arcNode[arc]! - cells;
    load[engine] = load[engine]! - surplus;
  }
  let cost = 0;
  for (const arc of carrying) {
    cost += network.arcBase[arc]! * flow[arc]!;
    if (churn !== null && flow[arc]! > churn.referenceExact[arc]!)
      cost += churn.moveMs[arc]! * (flow[arc]! - churn.referenceExact[arc]!);
    flow[arc] = flow[arc]! / scale;
  }
  for (let cell = 0; cell < cells; cell++) cost += shedCost(network, cell, shed[cell]!);
  for (let engine = 0; engine < engines; engine++) cost += engineCost(network, engine, load[engine]!);
  return {
    flowWps: flow,
    shedWps: shed.map((value) => value / scale),
    loadWps: load.map((value) => value / scale),
    objectiveMs: cost / scale,
  };
}

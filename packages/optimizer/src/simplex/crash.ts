import type { Equaliser } from "./equalise.ts";
import { findLevel } from "./level.ts";
import type { Network } from "./network.ts";
import { orderTree, SINK } from "./tree.ts";

/**
 * A first tree and first flows, without an artificial arc.
 *
 * Each engine's target is its load at the one marginal price at which all engines together carry all demand. Cells, the
 * largest first, fill the engines that are cheapest to them (c + φ′ at the present load) up to their targets. An engine
 * that fills is hung below the cell that filled it, a cell that is placed below the engine that took its last part; both
 * then stay as they are, so a spanning tree grows from its leaves. A cell that finds no engine with target left sheds.
 *
 * A start, not an answer: it sheds where the targets are in the wrong place.
 */
export function crash(network: Network, state: Equaliser): void {
  const { cells, root, tree, sink, price, demand, arcStart, arcNode, arcNext, churn } = network;
  const { parent, arc: arcs, flow } = tree;
  parent.fill(root);
  arcs.fill(SINK);
  const target = targets(network, state);
  sink.fill(0);
  flow.fill(0);
  const marginal = new Float64Array(root);
  for (let node = cells; node < root; node++) marginal[node] = marginalAt(network, node - cells, 0);

  const order = Uint32Array.from({ length: cells }, (_, cell) => cell);
  order.sort((a, b) => demand[b]! - demand[a]! || a - b);
  for (const cell of order) {
    let rest = demand[cell]!;
    const end = arcStart[cell + 1]!;
    while (true) {
      let best = -1;
      let least = Number.POSITIVE_INFINITY;
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const node = arcNode[arc]!;
        if (!(target[node]! > sink[node]!)) continue;
        const total = arcNext[arc]! + marginal[node]!;
        if (total < least) {
          least = total;
          best = arc;
        }
      }
      if (best < 0) {
        sink[cell] = rest;
        break;
      }
      const node = arcNode[best]!;
      const room = target[node]! - sink[node]!;
      const whole = room > rest;
      const amount = whole ? rest : room;
      if (
        churn !== null &&
        churn.reference[best]! > 0 &&
        (whole ? amount >= churn.reference[best]! : amount > churn.reference[best]!)
      ) {
        churn.beyond[best] = 1;
        network.arcNext[best] = network.arcBase[best]! + churn.moveMs[best]!;
      }
      const child = whole ? cell : node;
      parent[child] = whole ? node : cell;
      arcs[child] = best;
      flow[child] = amount;
      sink[node] = sink[node]! + amount;
      marginal[node] = marginalAt(network, node - cells, sink[node]!);
      rest -= amount;
      if (whole) break;
    }
  }
  orderTree(tree);
  for (let node = 0; node < root; node++) {
    if (arcs[node] === SINK) flow[node] = sink[node]!;
    // The grid holds an engine at the root by the price it finds here.
    price[node] = node < cells ? 0 : marginal[node]!;
  }
  price[root] = 0;
}

/** φ_e⁻¹ of the common marginal price, per node. */
function targets(network: Network, { level, supply }: Equaliser): Float64Array {
  const { cells, root, tree, price, sink, demand } = network;
  for (let cell = 0; cell < cells; cell++) {
    supply[cell] = demand[cell]!;
    // Nothing may be shed here: below any price of shedding.
    price[cell] = 0;
  }
  supply.fill(0, cells, root);
  price.fill(0);
  sink.fill(0);
  // All nodes below one engine are one component whose engines share a price.
  const target = new Float64Array(root);
  if (root === cells) return target;
  for (let node = 0; node < root; node++) tree.parent[node] = node === cells ? root : cells;
  orderTree(tree);
  findLevel(network, level, supply, cells);
  target.set(sink.subarray(cells), cells);
  tree.parent.fill(root);
  return target;
}

/** φ′ from the right at a load, ms; at the capacity the last one. */
export function marginalAt(
  { pieceStart, pieceFrom, pieceTo, pieceLow, pieceHigh }: Network,
  engine: number,
  load: number,
): number {
  const end = pieceStart[engine + 1]!;
  let piece = pieceStart[engine]!;
  if (piece === end) return 0;
  while (piece + 1 < end && pieceTo[piece]! <= load) piece++;
  const length = pieceTo[piece]! - pieceFrom[piece]!;
  return pieceLow[piece]! + ((pieceHigh[piece]! - pieceLow[piece]!) * (load - pieceFrom[piece]!)) / length;
}

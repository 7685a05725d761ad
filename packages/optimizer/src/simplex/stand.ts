import { marginalAt } from "./crash.ts";
import type { Network } from "./network.ts";
import { orderTree, SINK } from "./tree.ts";
import type { Warm } from "./warm.ts";

/**
 * The start where moving has a price: everything stays where it is.
 *
 * Every arc rests at its reference, every engine is a component of its own at the marginal of what then arrives, and each
 * cell hangs as a leaf below the engine where one more unit is cheapest to it, c + m + w, and sends what its references
 * leave over there. Where nothing is worth moving this is the optimum, with the right prices. A tree of an earlier solve
 * would be worse: with all its arcs on their references its prices, a step of m apart at each arc, fit nowhere.
 */
export function standStill(network: Network, warm: Warm | undefined): boolean {
  const { cells, engines, root, tree, sink, price, demand, churn, arcStart, arcNode, arcBase, arcNext, capacity } =
    network;
  if (churn === null) return false;
  let all = 0;
  let rests = 0;
  for (let cell = 0; cell < cells; cell++) {
    let left = demand[cell]!;
    all += left;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++)
      if (rest(network, arc, left)) left -= churn.reference[arc]!;
    rests += demand[cell]! - left;
  }
  // References that say little about the demand are no place to start from.
  if (!(rests >= MOST_PARTS * all) || all === 0) return false;

  sink.fill(0);
  const over = demand.slice();
  for (let cell = 0; cell < cells; cell++) {
    let left = demand[cell]!;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      if (!rest(network, arc, left)) continue;
      left -= churn.reference[arc]!;
      churn.beyond[arc] = 1;
      arcNext[arc] = arcBase[arc]! + churn.moveMs[arc]!;
      sink[arcNode[arc]!] = sink[arcNode[arc]!]! + churn.reference[arc]!;
    }
    over[cell] = left;
  }
  const known = warm !== undefined && warm.cells === cells && warm.price.length === root;
  // Rounding moves a load by up to one quantum for each of its arcs.
  const slack = cells + 16;
  for (let node = cells; node < root; node++) {
    const engine = node - cells;
    price[node] = marginalAt(network, engine, sink[node]!);
    if (!known) continue;
    // On a knot any price between the two marginals is right: the one it had, if that is one.
    const full = sink[node]! + slack >= capacity[engine]!;
    const high = full ? network.overflow[engine]! : marginalAt(network, engine, sink[node]! + slack);
    const low = marginalAt(network, engine, Math.max(0, sink[node]! - slack));
    price[node] = Math.min(high, Math.max(low, warm.price[node]!));
  }
  tree.parent.fill(root);
  tree.arc.fill(SINK);
  tree.flow.fill(0);
  for (let cell = 0; cell < cells; cell++) {
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      const node = arcNode[arc]!;
      const total = arcBase[arc]! + churn.moveMs[arc]! + price[node]!;
      if (!(total < least) || !(capacity[node - cells]! > 0)) continue;
      least = total;
      best = arc;
    }
    if (best < 0) {
      sink[cell] = over[cell]!;
      continue;
    }
    const rested = churn.reference[best]! > 0 && churn.beyond[best] === 1 ? churn.reference[best]! : 0;
    tree.parent[cell] = arcNode[best]!;
    tree.arc[cell] = best;
    tree.flow[cell] = rested + over[cell]!;
    sink[arcNode[best]!] = sink[arcNode[best]!]! + over[cell]!;
  }
  for (let engine = 0; engine < engines; engine++) snap(network, engine, sink[cells + engine]!, slack);
  orderTree(tree);
  price[root] = 0;
  for (let node = 0; node < root; node++) {
    if (tree.arc[node] === SINK) tree.flow[node] = sink[node]!;
    if (node < cells)
      price[node] = tree.arc[node] === SINK ? 0 : arcNext[tree.arc[node]!]! + price[tree.parent[node]!]!;
  }
  return true;
}

/** Takes every arc off its reference again. */
export function letGo({ churn, arcBase, arcNext }: Network): void {
  if (churn === null) return;
  for (let arc = 0; arc < arcNext.length; arc++) {
    if (churn.reference[arc] === 0) continue;
    churn.beyond[arc] = 0;
    arcNext[arc] = arcBase[arc]!;
  }
}

/** Moves the end of a piece that lies within `slack` quanta of the load onto it; a capacity only down. */
function snap(
  { capacity, pieceStart, pieceFrom, pieceTo }: Network,
  engine: number,
  load: number,
  slack: number,
): void {
  const end = pieceStart[engine + 1]!;
  for (let piece = pieceStart[engine]!; piece < end; piece++) {
    if (Math.abs(pieceTo[piece]! - load) > slack || load <= pieceFrom[piece]!) continue;
    if (piece + 1 < end) {
      if (load >= pieceTo[piece + 1]!) continue;
      pieceFrom[piece + 1] = load;
    } else {
      if (load > pieceTo[piece]!) continue;
      capacity[engine] = load;
    }
    pieceTo[piece] = load;
    return;
  }
}

/** At least this part of all demand must have a reference that can be kept. */
const MOST_PARTS = 0.5;

/** Whether the arc can rest at its reference while its cell has `left`. */
function rest({ cells, churn, capacity, arcNode }: Network, arc: number, left: number): boolean {
  const reference = churn!.reference[arc]!;
  return reference > 0 && reference <= left && capacity[arcNode[arc]! - cells]! > 0;
}

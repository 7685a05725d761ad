import type { Network } from "./network.ts";
import { orderTree, SINK } from "./tree.ts";

/**
 * What one solve leaves for the next: the tree, by node, and where prices, loads and flows stood. The equaliser makes the
 * new flows from the tree and the new demand; the old ones only say in which order arcs leave the tree. Plain typed
 * arrays, so that it crosses between threads. Arcs are
 * named by cell and engine, since the next problem may have others.
 */
export interface Warm {
  readonly cells: number;
  readonly engines: number;
  /** Parent of each cell, then of each engine; cells are 0 … K−1, engines K … K+E−1, the root K+E. */
  readonly parent: Int32Array;
  /** Price of each node, ms per unit of work: the place from which levels are searched. */
  readonly price: Float64Array;
  /** Load of each engine, work units/s. */
  readonly load: Float64Array;
  /** Flow on the arc to the parent as a part of its cell's demand; of a sink arc nothing. */
  readonly part: Float64Array;
  /** Arcs outside the tree that rest at their churn reference. */
  readonly heldCell: Uint32Array;
  readonly heldEngine: Uint32Array;
}

export function keepWarm(network: Network): Warm {
  const { cells, engines, root, tree, price, sink, scale, churn, demand, arcCell, arcNode } = network;
  const heldCell: number[] = [];
  const heldEngine: number[] = [];
  if (churn !== null) {
    for (let arc = 0; arc < churn.reference.length; arc++) {
      if (churn.beyond[arc] === 0 || churn.reference[arc] === 0) continue;
      if (tree.arc[arcCell[arc]!] === arc || tree.arc[arcNode[arc]!] === arc) continue;
      heldCell.push(arcCell[arc]!);
      heldEngine.push(arcNode[arc]! - cells);
    }
  }
  const part = new Float64Array(root);
  for (let node = 0; node < root; node++) {
    const arc = tree.arc[node]!;
    if (arc === SINK) continue;
    const all = demand[arcCell[arc]!]!;
    // A cell without demand will send it up when it has some.
    part[node] = all > 0 ? tree.flow[node]! / all : node < cells ? 1 : 0;
  }
  return {
    cells,
    engines,
    part,
    parent: tree.parent.slice(0, root),
    price: price.slice(0, root).map((value) => value - price[root]!),
    load: sink.slice(cells).map((value) => value / scale),
    heldCell: Uint32Array.from(heldCell),
    heldEngine: Uint32Array.from(heldEngine),
  };
}

/**
 * Sets tree, prices and loads from `warm`; false, with nothing changed, where it is of other cells or engines. An arc
 * that is gone leaves its node hanging from the root: a component of its own.
 */
export function plant(network: Network, warm: Warm): boolean {
  const { cells, engines, root, tree, price, sink, scale, churn, arcCell, arcNode, demand } = network;
  if (warm.cells !== cells || warm.engines !== engines || warm.parent.length !== root) return false;
  if (!isTree(warm, cells, root)) return false;
  for (let node = 0; node < root; node++) {
    const parent = warm.parent[node]!;
    let arc = SINK;
    if (parent !== root) arc = node < cells ? findArc(network, node, parent) : findArc(network, parent, node);
    tree.arc[node] = arc;
    tree.parent[node] = arc === SINK ? root : parent;
    tree.flow[node] = arc === SINK ? 0 : warm.part[node]! * demand[arcCell[arc]!]!;
  }
  hangLeaves(network, warm);
  orderTree(tree);
  for (let engine = 0; engine < engines; engine++) sink[cells + engine] = Math.floor(warm.load[engine]! * scale);
  if (churn !== null) {
    // Arcs that rest at their reference go on doing so, as far as their cell's new demand reaches.
    const left = demand.slice();
    for (let i = 0; i < warm.heldCell.length; i++) {
      const arc = findArc(network, warm.heldCell[i]!, cells + warm.heldEngine[i]!);
      if (arc < 0 || churn.reference[arc] === 0 || churn.reference[arc]! > left[arcCell[arc]!]!) continue;
      if (tree.arc[arcCell[arc]!] === arc || tree.arc[arcNode[arc]!] === arc) continue;
      left[arcCell[arc]!] = left[arcCell[arc]!]! - churn.reference[arc]!;
      churn.beyond[arc] = 1;
      network.arcNext[arc] = network.arcBase[arc]! + churn.moveMs[arc]!;
    }
  }
  price[root] = 0;
  for (let node = tree.next[root]!; node !== root; node = tree.next[node]!) {
    const arc = tree.arc[node]!;
    if (arc === SINK) price[node] = warm.price[node]!;
    else if (node < cells) price[node] = price[tree.parent[node]!]! + network.arcNext[arc]!;
    else price[node] = price[tree.parent[node]!]! - network.arcNext[arc]!;
  }
  return true;
}

/**
 * A cell that is new, or whose arc is gone, and that holds nothing else goes to the engine that is cheapest to it by the
 * old prices: from its shed arc it would come back at the price of shedding, through half the tree.
 */
function hangLeaves(network: Network, warm: Warm): void {
  const { cells, root, tree, demand, arcStart, arcNode, arcNext, capacity, shedMs } = network;
  const holds = new Uint8Array(root + 1);
  for (let node = 0; node < root; node++) holds[tree.parent[node]!] = 1;
  for (let cell = 0; cell < cells; cell++) {
    if (tree.arc[cell] !== SINK || holds[cell] === 1 || warm.price[cell]! >= shedMs[cell]!) continue;
    let best = -1;
    let least = shedMs[cell]!;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      const node = arcNode[arc]!;
      const total = arcNext[arc]! + warm.price[node]!;
      if (!(total < least) || !(capacity[node - cells]! > 0)) continue;
      least = total;
      best = arc;
    }
    if (best < 0) continue;
    tree.arc[cell] = best;
    tree.parent[cell] = arcNode[best]!;
    tree.flow[cell] = demand[cell]!;
  }
}

/** The arc from `cell` to the engine at `node`, or −1. Rows are usually in order of engine; any order works. */
function findArc({ arcStart, arcNode }: Network, cell: number, node: number): number {
  const end = arcStart[cell + 1]!;
  let low = arcStart[cell]!;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (arcNode[middle]! < node) low = middle + 1;
    else high = middle;
  }
  if (low < end && arcNode[low] === node) return low;
  for (let arc = arcStart[cell]!; arc < end; arc++) if (arcNode[arc] === node) return arc;
  return -1;
}

/** What comes from outside could have a loop, or an arc between two cells. */
function isTree({ parent }: Warm, cells: number, root: number): boolean {
  const known = new Uint8Array(root + 1);
  known[root] = 1;
  for (let node = 0; node < root; node++) {
    let at = node;
    while (known[at] === 0) {
      const up = parent[at]!;
      if (!(up >= 0 && up <= root) || (up < root && up < cells === at < cells)) return false;
      known[at] = 2;
      at = up;
    }
    if (known[at] === 2) return false;
    for (at = node; known[at] === 2; at = parent[at]!) known[at] = 1;
  }
  return true;
}

import { createLevel, findLevel, type Level } from "./level.ts";
import type { Network } from "./network.ts";
import { rehang, SINK } from "./tree.ts";

/**
 * Exact equalisation, and the relaxation of a tree whose flows are unknown.
 *
 * Each child subtree of the root is a *component*: inside it all prices are fixed relative to each other by the arcs, and
 * one number θ is free. The best flows on the component's arcs are those of the θ at which its sinks take exactly what
 * its cells send:
 *
 *     Σ_v y_v(w_v + θ) = T,   y_e = φ_e′⁻¹ clamped to 0 … U_e,   y_k = the shed that is worth its price
 *
 * a monotone scalar equation. The flows on the tree arcs follow from the leaves. Where one is out of its segment (negative,
 * above its reference) the arc doesn't belong in the tree: it is cut, what hangs below becomes a component of its own,
 * and the parts are equalised again. So this needs no flows to start from: it makes feasible flows from a tree, prices
 * and demand alone, which is all that a warm start keeps. Where the tree is the right one the result is the exact optimum.
 */
export interface Equaliser {
  readonly level: Level;
  /** What a node itself sends into the tree: demand or nothing, less or plus what arcs at their reference carry. */
  readonly supply: Float64Array;
  /** What a node's subtree sends to its parent. */
  readonly net: Float64Array;
  /** Tops of components still to do. */
  readonly pending: number[];
  readonly misfits: number[];
}

export function createEqualiser(network: Network): Equaliser {
  return {
    level: createLevel(network),
    supply: new Float64Array(network.root),
    net: new Float64Array(network.root),
    pending: [],
    misfits: [],
  };
}

/**
 * Equalises every component, cutting arcs that don't fit. Prices must be those of the tree. Afterwards `sink`, the
 * tree's flows and the prices are right, and each component hangs by an engine (by a shedding cell where one sheds part
 * of a step). Returns the number of cuts.
 */
export function equalise(network: Network, state: Equaliser): number {
  const { root, tree, price } = network;
  const { next, last } = tree;
  const { pending, misfits } = state;
  const base = price[root]!;
  if (base !== 0) for (let node = 0; node <= root; node++) price[node] = price[node]! - base;
  fillSupply(network, state);
  for (let node = next[root]!; node !== root; node = next[last[node]!]!) pending.push(node);
  let cuts = 0;
  while (pending.length > 0) {
    const top = settle(network, state, pending.pop()!);
    misfits.length = 0;
    sendUp(network, state, top);
    if (misfits.length === 0) continue;
    // From the leaves up: what hangs below a misfit has been cut off before it.
    for (const node of misfits) cut(network, state, node);
    cuts += misfits.length;
    pending.push(top);
  }
  return cuts;
}

function fillSupply({ cells, root, demand, churn, arcCell, arcNode, tree }: Network, { supply }: Equaliser): void {
  for (let cell = 0; cell < cells; cell++) supply[cell] = demand[cell]!;
  supply.fill(0, cells, root);
  if (churn === null) return;
  for (let arc = 0; arc < churn.reference.length; arc++) {
    if (churn.beyond[arc] === 0 || churn.reference[arc] === 0) continue;
    const cell = arcCell[arc]!;
    const node = arcNode[arc]!;
    if (tree.arc[cell] === arc || tree.arc[node] === arc) continue;
    supply[cell] = supply[cell]! - churn.reference[arc]!;
    supply[node] = supply[node]! + churn.reference[arc]!;
  }
}

/** Finds the component's level, sets its sinks and prices, and hangs it by a node that can hold it. Returns that node. */
function settle(network: Network, { level, supply }: Equaliser, top: number): number {
  const { cells, root, tree, price, sink, capacity } = network;
  const shift = findLevel(network, level, supply, top);
  const end = tree.next[tree.last[top]!]!;
  let held = -1;
  if (top >= cells && sink[top]! < capacity[top - cells]!) held = top;
  let engine = top >= cells ? top : -1;
  let node = top;
  do {
    price[node] = price[node]! + shift;
    if (node >= cells) {
      if (engine < 0) engine = node;
      if (held < 0 && sink[node]! < capacity[node - cells]!) held = node;
    }
    node = tree.next[node]!;
  } while (node !== end);
  if (level.partShed >= 0) held = level.partShed;
  else if (held < 0) held = engine >= 0 ? engine : top;
  if (held !== top) rehang(tree, top, held, root, SINK, 0);
  tree.flow[held] = sink[held]!;
  return held;
}

/** Tree flows from the leaves; nodes whose arc to the parent is out of its segment go to `misfits`, deepest first. */
function sendUp({ cells, tree, sink, churn }: Network, { net, supply, misfits }: Equaliser, top: number): void {
  const { parent, arc, flow, before, last, next } = tree;
  const end = next[last[top]!]!;
  let node = top;
  do {
    net[node] = supply[node]! - sink[node]!;
    node = next[node]!;
  } while (node !== end);
  for (node = last[top]!; node !== top; node = before[node]!) {
    const sent = net[node]!;
    net[parent[node]!] = net[parent[node]!]! + sent;
    let from = 0;
    let to = Number.POSITIVE_INFINITY;
    if (churn !== null) {
      if (churn.beyond[arc[node]!] === 1) from = churn.reference[arc[node]!]!;
      else to = churn.reference[arc[node]!]!;
    }
    // Strictly feasible: from each node something more must be able to go towards the root.
    const amount = node < cells ? sent : -sent;
    const good = node < cells ? amount >= from && amount < to : amount > from && amount <= to;
    flow[node] = amount;
    if (!good) misfits.push(node);
  }
}

/** Takes the arc above `node` out of the tree, at rest where its flow went out of its segment. */
function cut(network: Network, { supply, pending }: Equaliser, node: number): void {
  const { cells, root, tree, churn, arcNext, arcBase, arcCell, arcNode, price } = network;
  const arc = tree.arc[node]!;
  const amount = tree.flow[node]!;
  if (churn !== null && churn.reference[arc]! > 0) {
    const above = churn.beyond[arc] === 0 && amount >= churn.reference[arc]!;
    if (above) {
      churn.beyond[arc] = 1;
      const dear = arcBase[arc]! + churn.moveMs[arc]!;
      if (node < cells && tree.size[node] === 1) {
        // A cell alone can only go on beyond its reference.
        price[node] = price[node]! + dear - arcNext[arc]!;
        arcNext[arc] = dear;
        return;
      }
      arcNext[arc] = dear;
    } else if (node < cells && tree.size[node] === 1 && churn.beyond[arc] === 1) {
      churn.beyond[arc] = 0;
      price[node] = price[node]! + arcBase[arc]! - arcNext[arc]!;
      arcNext[arc] = arcBase[arc]!;
      return;
    }
    if (churn.beyond[arc] === 1) {
      supply[arcCell[arc]!] = supply[arcCell[arc]!]! - churn.reference[arc]!;
      supply[arcNode[arc]!] = supply[arcNode[arc]!]! + churn.reference[arc]!;
    }
  }
  // A cell whose engines have all been cut off keeps its one way out.
  if (node < cells && tree.size[node] === 1) return;
  const engine = node < cells ? tree.next[node]! : node;
  rehang(tree, node, engine, root, SINK, 0);
  pending.push(engine);
}

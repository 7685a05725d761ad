import { createLevel, findLevel, type Level } from "./level.ts";
import type { Network } from "./network.ts";
import { rehang, SINK } from "./tree.ts";

/**
 * Exact equalisation, and the relaxation of a tree whose flows no longer fit.
 *
 * Each child subtree of the root is a *component*: inside it all prices are fixed relative to each other by the arcs, and
 * one number θ is free. The best flows on the component's arcs are those of the θ at which its sinks take exactly what
 * its cells send:
 *
 *     Σ_v y_v(w_v + θ) = T,   y_e = φ_e′⁻¹ clamped to 0 … U_e,   y_k = the shed that is worth its price
 *
 * a monotone scalar equation (`level.ts`). The flows on the tree arcs follow from the leaves. Where one is out of its
 * segment (negative, above its reference) the arc doesn't belong in the tree. On the straight way from the present flows
 * to the wanted ones the arc that comes first to the end of its segment is cut; what hangs below becomes a component of
 * its own, and both parts are equalised again from the flows at that point, so that the cost falls all along. Past a
 * budget of visits all misfits of a component are cut at once.
 *
 * Only the order of cuts needs the present flows, and they may be rough: the result follows from tree, prices and demand.
 * Where the tree is the right one it is the exact optimum.
 */
export interface Equaliser {
  readonly level: Level;
  /** What a node itself sends into the tree: demand or nothing, less or plus what arcs at their reference carry. */
  readonly supply: Float64Array;
  /** What a node's subtree sends to its parent, and what that makes the flow on the arc. */
  readonly net: Float64Array;
  readonly wanted: Float64Array;
  /** Tops of components still to do. */
  readonly pending: number[];
  readonly misfits: number[];
  /** Segment changes left to this call: past them a cell is cut off instead, so that it ends. */
  changes: number;
}

/** Visits of nodes, per node of the tree, until components are cut at all misfits at once. */
const VISITS = 60;
/** Arcs that block this near to the first one, as a part of the way, are cut with it. */
const TOGETHER = 1e-9;

export function createEqualiser(network: Network): Equaliser {
  return {
    level: createLevel(network),
    supply: new Float64Array(network.root),
    net: new Float64Array(network.root),
    wanted: new Float64Array(network.root),
    pending: [],
    misfits: [],
    changes: 0,
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
  state.changes = 4 * root;
  for (let node = next[root]!; node !== root; node = next[last[node]!]!) pending.push(node);
  let cuts = 0;
  let visits = VISITS * root;
  while (pending.length > 0) {
    const top = settle(network, state, pending.pop()!);
    visits -= tree.size[top]!;
    misfits.length = 0;
    sendUp(network, state, top);
    if (misfits.length === 0) {
      accept(network, state, top);
      continue;
    }
    if (visits > 0) keepFirst(network, state, top);
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
  return held;
}

/** Tree flows from the leaves; nodes whose arc to the parent is out of its segment go to `misfits`, deepest first. */
function sendUp({ cells, tree, sink, churn }: Network, state: Equaliser, top: number): void {
  const { net, wanted, supply, misfits } = state;
  const { parent, arc, before, last, next } = tree;
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
    wanted[node] = amount;
    if (!good) misfits.push(node);
  }
}

function accept({ tree, sink }: Network, { wanted }: Equaliser, top: number): void {
  const end = tree.next[tree.last[top]!]!;
  tree.flow[top] = sink[top]!;
  for (let node = tree.next[top]!; node !== end; node = tree.next[node]!) tree.flow[node] = wanted[node]!;
}

/** How far along the way from its flow to the wanted one a misfit leaves its segment, 0 … 1. */
function blockedAt({ tree, churn }: Network, { wanted }: Equaliser, node: number): number {
  const arc = tree.arc[node]!;
  const to = wanted[node]!;
  const from = tree.flow[node]!;
  let end = 0;
  if (churn !== null && (churn.beyond[arc] === 1 || to >= churn.reference[arc]!)) end = churn.reference[arc]!;
  const part = (from - end) / (from - to);
  return part > 0 ? Math.min(part, 1) : 0;
}

/** Keeps the misfits that block first, and moves the component's flows to where they do. */
function keepFirst(network: Network, state: Equaliser, top: number): void {
  const { next, last, flow } = network.tree;
  const { misfits, wanted } = state;
  let way = 1;
  for (const node of misfits) way = Math.min(way, blockedAt(network, state, node));
  let kept = 0;
  for (const node of misfits) if (blockedAt(network, state, node) <= way + TOGETHER) misfits[kept++] = node;
  misfits.length = kept;
  const end = next[last[top]!]!;
  for (let node = next[top]!; node !== end; node = next[node]!)
    flow[node] = flow[node]! + way * (wanted[node]! - flow[node]!);
}

/** Takes the arc above `node` out of the tree, at rest at the end of its segment where its flow went out of it. */
function cut(network: Network, state: Equaliser, node: number): void {
  const { cells, root, tree, sink } = network;
  const { supply, pending } = state;
  if (node < cells && tree.size[node] === 1) {
    // A cell alone (its engines have been cut off before it): it keeps its way out, on the segment that holds its flow.
    const left = supply[node]! - sink[node]!;
    // Shedding beyond the reference and not before it: the arc rests on it and the shed arc takes what is over.
    const between = network.churn?.beyond[tree.arc[node]!] === 1 && sink[node]! > 0;
    if (state.changes-- > 0 && left >= 0 && !(between && supply[node]! >= network.churn!.reference[tree.arc[node]!]!)) {
      setSegment(network, node, left);
      return;
    }
  }
  rest(network, state, node);
  const top = node < cells && tree.size[node]! > 1 ? tree.next[node]! : node;
  rehang(tree, node, top, root, SINK, 0);
  pending.push(top);
}

/** Puts a leaf cell's arc on the segment in which `flow` lies; its price follows. */
function setSegment({ tree, price, churn, arcNext, arcBase }: Network, cell: number, flow: number): void {
  const arc = tree.arc[cell]!;
  if (churn === null || churn.reference[arc] === 0) return;
  const beyond = flow >= churn.reference[arc]! ? 1 : 0;
  const cost = beyond === 1 ? arcBase[arc]! + churn.moveMs[arc]! : arcBase[arc]!;
  price[cell] = price[cell]! + cost - arcNext[arc]!;
  arcNext[arc] = cost;
  churn.beyond[arc] = beyond;
}

/** The arc above `node` comes to rest at its reference, as far as its cell's supply reaches, or at 0. */
function rest(
  { tree, churn, arcNext, arcBase, arcCell, arcNode }: Network,
  { supply, wanted }: Equaliser,
  node: number,
): void {
  const arc = tree.arc[node]!;
  if (churn === null || churn.reference[arc] === 0) return;
  const held = churn.reference[arc]!;
  const cell = arcCell[arc]!;
  const wants = churn.beyond[arc] === 1 || wanted[node]! >= held;
  const beyond = wants && supply[cell]! >= held ? 1 : 0;
  churn.beyond[arc] = beyond;
  arcNext[arc] = beyond === 1 ? arcBase[arc]! + churn.moveMs[arc]! : arcBase[arc]!;
  if (beyond === 0) return;
  supply[cell] = supply[cell]! - held;
  supply[arcNode[arc]!] = supply[arcNode[arc]!]! + held;
}

import type { Grid } from "./grid.ts";
import type { Network } from "./network.ts";
import { pushArc, pushSink } from "./pivot.ts";
import { SINK } from "./tree.ts";

/**
 * Pricing: which arc enters next, until none has a reduced cost below −ε.
 *
 * A *row* is a cell with its arcs; only its cheapest arc min(c + w) is looked at. While more than a quarter of the nodes
 * have something to gain, every pass scans all rows and pivots as it goes. After that each row keeps its few arcs nearest
 * to its minimum and passes go over those alone; when they are exhausted all rows are scanned again, and a scan that
 * finds nothing ends the stage.
 */
export interface Pricing {
  /** Candidate arcs of cell k: `list[k · LIST] …`, `listed[k]` of them. */
  readonly list: Int32Array;
  readonly listed: Uint8Array;
  /** How far above its minimum a row's candidates may lie, ms: each row finds its own. */
  readonly width: Float64Array;
  /** Arcs with a reference, by cell, for the way back: `held[heldStart[k] .. heldStart[k + 1]]`. */
  readonly heldStart: Uint32Array;
  readonly held: Uint32Array;
  pivots: number;
}

/** Candidates kept per row. Fewer means more full scans, more means longer passes; 10–24 were equal within noise. */
const LIST = 16;

/** Below one pivot for this many nodes a pass over all rows is followed by another, not by lists. */
const FEW = 64;

/** Pivots between two looks at the clock or the cancel word. */
const POLL_EVERY = 64;

export interface Limits {
  /** Pivots in all, over all stages. */
  readonly pivotLimit: number;
  /** True = stop now. Asked every 64 pivots. */
  readonly poll: () => boolean;
}

export function createPricing(network: Network): Pricing {
  const { cells, churn, arcStart } = network;
  const heldStart = new Uint32Array(cells + 1);
  const held: number[] = [];
  for (let cell = 0; cell < cells; cell++) {
    if (churn !== null)
      for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) if (churn.reference[arc]! > 0) held.push(arc);
    heldStart[cell + 1] = held.length;
  }
  return {
    list: new Int32Array(cells * LIST),
    listed: new Uint8Array(cells),
    width: new Float64Array(cells),
    heldStart,
    held: Uint32Array.from(held),
    pivots: 0,
  };
}

/** Pivots until nothing is left to gain by more than ε. False when a limit ended it before. */
export function runSimplex(network: Network, grid: Grid, pricing: Pricing, epsilon: number, limits: Limits): boolean {
  const { cells, root } = network;
  const stopped = stopper(pricing, limits);
  while (true) {
    let before = pricing.pivots;
    for (let cell = 0; cell < cells; cell++) {
      const arc = cheapest(network, cell);
      if (arc >= 0) tryArc(network, grid, pricing, arc, epsilon);
      trySink(network, grid, pricing, cell, epsilon);
      tryHeld(network, grid, pricing, cell, epsilon);
      if (stopped()) return false;
    }
    for (let node = cells; node < root; node++) {
      trySink(network, grid, pricing, node, epsilon);
      if (stopped()) return false;
    }
    if (pricing.pivots === before) return true;
    // Many: the lists would be stale at once. A few: another scan costs less than making lists.
    if (4 * (pricing.pivots - before) > root || FEW * (pricing.pivots - before) < root) continue;

    for (let cell = 0; cell < cells; cell++) collect(network, pricing, cell);
    do {
      before = pricing.pivots;
      for (let cell = 0; cell < cells; cell++) {
        const arc = cheapestListed(network, pricing, cell);
        if (arc >= 0) tryArc(network, grid, pricing, arc, epsilon);
        trySink(network, grid, pricing, cell, epsilon);
        tryHeld(network, grid, pricing, cell, epsilon);
        if (stopped()) return false;
      }
      for (let node = cells; node < root; node++) {
        trySink(network, grid, pricing, node, epsilon);
        if (stopped()) return false;
      }
    } while (pricing.pivots > before);
  }
}

/** One pass over all rows in which arcs enter and sinks don't. False when a limit ended it before. */
export function enterArcs(network: Network, grid: Grid, pricing: Pricing, epsilon: number, limits: Limits): boolean {
  const stopped = stopper(pricing, limits);
  for (let cell = 0; cell < network.cells; cell++) {
    const arc = cheapest(network, cell);
    if (arc >= 0) tryArc(network, grid, pricing, arc, epsilon);
    tryHeld(network, grid, pricing, cell, epsilon);
    if (stopped()) return false;
  }
  return true;
}

function stopper(pricing: Pricing, { pivotLimit, poll }: Limits): () => boolean {
  let asked = pricing.pivots;
  return () => {
    if (pricing.pivots >= pivotLimit) return true;
    if (pricing.pivots - asked < POLL_EVERY) return false;
    asked = pricing.pivots;
    return poll();
  };
}

/** The arc of least c + w in the whole row, or −1. */
function cheapest({ arcStart, arcNode, arcNext, price }: Network, cell: number): number {
  const end = arcStart[cell + 1]!;
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let arc = arcStart[cell]!; arc < end; arc++) {
    const total = arcNext[arc]! + price[arcNode[arc]!]!;
    if (total < least) {
      least = total;
      best = arc;
    }
  }
  return best;
}

function cheapestListed({ arcNode, arcNext, price }: Network, { list, listed }: Pricing, cell: number): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  const first = cell * LIST;
  const end = first + listed[cell]!;
  for (let i = first; i < end; i++) {
    const arc = list[i]!;
    const total = arcNext[arc]! + price[arcNode[arc]!]!;
    if (total < least) {
      least = total;
      best = arc;
    }
  }
  return best;
}

/** Fills the row's candidates with arcs at most `width` above its minimum, and corrects the width for the next time. */
function collect(network: Network, { list, listed, width }: Pricing, cell: number): void {
  const { arcStart, arcNode, arcNext, price } = network;
  const cheap = cheapest(network, cell);
  if (cheap < 0) return;
  const least = arcNext[cheap]! + price[arcNode[cheap]!]!;
  if (width[cell] === 0) width[cell] = Math.max(1, Math.abs(least) / 16);
  const within = least + width[cell]!;
  const first = cell * LIST;
  const end = arcStart[cell + 1]!;
  let count = 0;
  let over = 0;
  for (let arc = arcStart[cell]!; arc < end; arc++) {
    if (arcNext[arc]! + price[arcNode[arc]!]! <= within) {
      if (count < LIST) list[first + count++] = arc;
      else over++;
    }
  }
  if (over > 0) {
    // The minimum itself must not be among those left out.
    list[first + LIST - 1] = cheap;
    width[cell] = width[cell]! * 0.5;
  } else if (count < LIST / 2) width[cell] = width[cell]! * 1.5;
  listed[cell] = count;
}

function tryArc(network: Network, grid: Grid, pricing: Pricing, arc: number, epsilon: number): void {
  const { arcCell, arcNode, arcNext, price, tree } = network;
  const cell = arcCell[arc]!;
  const node = arcNode[arc]!;
  if (!(arcNext[arc]! + price[node]! - price[cell]! < -epsilon)) return;
  // A tree arc's reduced cost is zero but for rounding.
  if (tree.arc[cell] === arc || tree.arc[node] === arc) return;
  pushArc(network, grid, arc, true, epsilon);
  pricing.pivots++;
}

function trySink(network: Network, grid: Grid, pricing: Pricing, node: number, epsilon: number): void {
  const { price, root, tree } = network;
  if (tree.arc[node] === SINK) return;
  const worth = price[node]! - price[root]!;
  const at = grid.at[node]!;
  if (worth > grid.slope[at]! + epsilon) pushSink(network, grid, node, true, epsilon);
  else if (at > grid.start[node]! && worth < grid.slope[at - 1]! - epsilon)
    pushSink(network, grid, node, false, epsilon);
  else return;
  pricing.pivots++;
}

/** Arcs that rest on their reference: is giving some of it back worth more than it costs? */
function tryHeld(network: Network, grid: Grid, pricing: Pricing, cell: number, epsilon: number): void {
  const { churn, arcBase, arcNode, price, tree } = network;
  if (churn === null) return;
  const end = pricing.heldStart[cell + 1]!;
  for (let i = pricing.heldStart[cell]!; i < end; i++) {
    const arc = pricing.held[i]!;
    if (churn.beyond[arc] === 0) continue;
    const node = arcNode[arc]!;
    if (tree.arc[cell] === arc || tree.arc[node] === arc) continue;
    if (!(price[cell]! - arcBase[arc]! - price[node]! < -epsilon)) continue;
    pushArc(network, grid, arc, false, epsilon);
    pricing.pivots++;
  }
}

/** Sink flows as the simplex left them. */
export function takeSinks({ root, tree, sink }: Network, grid: Grid): void {
  for (let node = 0; node < root; node++)
    sink[node] = tree.arc[node] === SINK ? tree.flow[node]! : grid.from[grid.at[node]!]!;
}

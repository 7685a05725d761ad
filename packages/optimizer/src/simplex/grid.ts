import type { Network } from "./network.ts";
import { rehang, SINK } from "./tree.ts";

/**
 * The cost of every sink arc as straight segments, cut where it matters at present.
 *
 * Node v's segments are `start[v] .. end[v]`: segment i goes from `from[i]` to `from[i + 1]`, the last one on for ever,
 * and costs `slope[i]` a unit. An engine is cut at its present load, at doubling distances η·U, 3η·U, 7η·U … on both
 * sides of it, at the ends of its pieces, and has one more segment beyond its capacity. On a piece the marginal is
 * straight, so the chord's slope is the marginal in the middle: no difference of large numbers. Since the present load
 * is a cut, the present tree and flows are a valid basis whatever η is.
 *
 * `at[v]`: outside the tree the flow rests at `from[at[v]]`; in the tree it moves inside segment `at[v]`.
 *
 * The engine that holds a component to the root gets one segment of a single quantum at its load, whose slope is the
 * price it has. It lets prices pass through a new grid unchanged, and prices of engines that rest on a knot of their
 * curve, where any price between two marginals is right, stay where they are.
 */
export interface Grid {
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly from: Float64Array;
  readonly slope: Float64Array;
  readonly at: Uint32Array;
}

/** Steps of a grid finer than 2⁻⁴⁸ of the capacity say nothing new. */
const MOST_DOUBLINGS = 50;

export function createGrid(network: Network): Grid {
  const { cells, root, shedSteps, pieceStart } = network;
  const start = new Uint32Array(root);
  let total = 0;
  for (let node = 0; node < root; node++) {
    start[node] = total;
    const engine = node - cells;
    if (engine < 0) total += shedSteps;
    else if (pieceStart[engine + 1]! > pieceStart[engine]!)
      total += pieceStart[engine + 1]! - pieceStart[engine]! + 2 * MOST_DOUBLINGS + 4;
    else total += 2;
  }
  const grid: Grid = {
    start,
    end: start.slice(),
    from: new Float64Array(total),
    slope: new Float64Array(total),
    at: new Uint32Array(root),
  };
  for (let cell = 0; cell < cells; cell++) cutShed(network, grid, cell);
  return grid;
}

/** The steps of a cell's shed price. A step that rounds to nothing is left out; the last one has no end. */
function cutShed({ demand, shedMs, shedStepMs, shedSteps }: Network, grid: Grid, cell: number): void {
  let at = grid.start[cell]!;
  for (let step = 0; step < shedSteps; step++) {
    const from = Math.floor((demand[cell]! * step) / shedSteps);
    if (step > 0 && (from <= grid.from[at - 1]! || shedStepMs === 0)) continue;
    grid.from[at] = from;
    grid.slope[at] = shedMs[cell]! + shedStepMs * step;
    at++;
  }
  grid.end[cell] = at;
}

/** Cuts every engine anew around its present load, puts every sink flow on its cut, and sets all prices from the tree. */
export function regrid(network: Network, grid: Grid, eta: number): void {
  const { cells, root, tree, price, sink } = network;
  for (let node = cells; node < root; node++) {
    const held = tree.arc[node] === SINK;
    cutEngine(network, grid, node, eta, held, price[node]! - price[root]!);
  }
  for (let cell = 0; cell < cells; cell++) {
    // A shed between two cuts is in the tree (the equaliser leaves at most one per component, and hangs it there).
    let at = grid.start[cell]!;
    while (at + 1 < grid.end[cell]! && grid.from[at + 1]! <= sink[cell]!) at++;
    grid.at[cell] = at;
    if (tree.arc[cell] === SINK) tree.flow[cell] = sink[cell]!;
    // All of its demand, which is no cut: a leaf that sends nothing on. It comes to hang by its shed arc.
    else if (sink[cell]! > grid.from[at]!) rehang(tree, cell, cell, root, SINK, sink[cell]!);
  }
  setPrices(network, grid);
}

function cutEngine(
  { cells, sink, tree, capacity, pieceStart, pieceFrom, pieceTo, pieceLow, pieceHigh, overflow }: Network,
  grid: Grid,
  node: number,
  eta: number,
  held: boolean,
  price: number,
): void {
  const engine = node - cells;
  const { from, slope } = grid;
  const load = sink[node]!;
  const most = capacity[engine]!;
  let at = grid.start[node]!;
  if (held) tree.flow[node] = load;
  const pieces = pieceStart[engine + 1]!;
  let mine = -1;
  if (pieceStart[engine]! < pieces) {
    const step = Math.max(1, Math.round(eta * most));
    // η·U, 3η·U, 7η·U …: whole numbers of quanta, so that doubling and halving are exact.
    let left = step;
    while (load - left > 0) left = 2 * left + step;
    left = (left - step) / 2;
    let piece = pieceStart[engine]!;
    let position = 0;
    // Rising candidates: 0, those left of the load, the load, those right of it; each piece's end comes between.
    let right = 0;
    while (position < most) {
      let upTo: number;
      if (left > 0) upTo = load - left;
      else if (position < load) upTo = load;
      else if (held && position === load) upTo = load + 1;
      else {
        do right = 2 * right + step;
        while (load + right <= position);
        upTo = load + right;
      }
      if (upTo > most) upTo = most;
      if (left > 0 && upTo <= position) {
        left = (left - step) / 2;
        continue;
      }
      const end = pieceTo[piece]!;
      if (upTo > end) upTo = end;
      if (position === load) mine = at;
      from[at] = position;
      const length = end - pieceFrom[piece]!;
      slope[at] =
        pieceLow[piece]! +
        (pieceHigh[piece]! - pieceLow[piece]!) * (((position + upTo) / 2 - pieceFrom[piece]!) / length);
      at++;
      position = upTo;
      if (left > 0 && position === load - left) left = (left - step) / 2;
      if (position === end && piece + 1 < pieces) piece++;
    }
  }
  // Beyond the capacity, with a cut at a load that lies there.
  if (load === most) mine = at;
  from[at] = most;
  slope[at] = overflow[engine]!;
  at++;
  if (load > most) {
    if (held) mine = at - 1;
    else {
      mine = at;
      from[at] = load;
      slope[at] = overflow[engine]!;
      at++;
    }
  }
  grid.end[node] = at;
  grid.at[node] = mine;
  if (!held || load > most || most === 0) return;
  // The held engine's own segment: to the right of its load, or to the left where it is full.
  if (load === most) mine--;
  const above = mine + 1 < at ? slope[mine + 1]! : overflow[engine]!;
  const below = mine > grid.start[node]! ? slope[mine - 1]! : Number.NEGATIVE_INFINITY;
  grid.at[node] = mine;
  if (load === most) {
    // Its segment may be long: cut the last quantum off.
    if (from[mine]! < load - 1) {
      mine++;
      from[mine + 1] = most;
      slope[mine + 1] = overflow[engine]!;
      from[mine] = load - 1;
      grid.end[node] = at + 1;
      grid.at[node] = mine;
      slope[mine] = Math.min(overflow[engine]!, Math.max(slope[mine - 1]!, price));
      return;
    }
  }
  slope[mine] = Math.min(above, Math.max(below, price));
}

/** Prices from the tree: a component's from the segment that holds it to the root, the others' along the arcs. */
function setPrices({ cells, root, tree, price, arcNext }: Network, grid: Grid): void {
  const { parent, arc, next } = tree;
  price[root] = 0;
  for (let node = next[root]!; node !== root; node = next[node]!) {
    if (arc[node] === SINK) price[node] = grid.slope[grid.at[node]!]!;
    else if (node < cells) price[node] = price[parent[node]!]! + arcNext[arc[node]!]!;
    else price[node] = price[parent[node]!]! - arcNext[arc[node]!]!;
  }
}

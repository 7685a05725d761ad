import type { Network } from "./network.ts";

/**
 * The level θ of one component: Σ_v y_v(w_v + θ) = T, where y_e(w) is the load at which engine e's marginal is w (clamped
 * to 0 … U_e) and y_k(w) the shed of cell k that is worth its price w. The left side never falls in θ; it is piecewise
 * linear, with plateaus (all engines on knots or full) and jumps (a flat marginal, a step of the shed price).
 *
 * Newton from the present prices, kept inside a bracket; on a plateau the next place where anything changes. It starts at
 * θ = 0 and stops at the first θ that fits, so prices that are right as they are stay. Where the bracket closes on a jump
 * the sinks that jump take their part one after the other, engines first: at most one cell sheds part of a step.
 */
export interface Level {
  readonly nodes: Int32Array;
  /** Sink flows on the two sides of a jump; one value in both where there is none. */
  readonly low: Float64Array;
  readonly high: Float64Array;
  /** After `findLevel`: the cell that sheds part of a step, or −1. */
  partShed: number;
  /** After `sum`: the derivative, and the θ nearest below and above at which anything changes. */
  rate: number;
  below: number;
  above: number;
}

/** Steps of the search; bisection alone needs about 60. */
const MOST_STEPS = 200;
/** From here on every second step halves the bracket: Newton can crawl along a staircase. */
const NEWTON_STEPS = 12;
/** Prices nearer than this part of the dearest shed price are equal. */
const PRICE_TOLERANCE = 2 ** -45;
/** Stands for "without bound" and is above any flow. */
const ENDLESS = 2 ** 52;

export function createLevel({ root }: Network): Level {
  return {
    nodes: new Int32Array(root),
    low: new Float64Array(root),
    high: new Float64Array(root),
    partShed: -1,
    rate: 0,
    below: 0,
    above: 0,
  };
}

/** Sets `sink` for the component whose top is `top`, and returns θ, ms. */
export function findLevel(network: Network, level: Level, supply: Float64Array, top: number): number {
  const { cells, tree, price, sink, shedMs, shedStepMs, shedSteps, pieceStart, pieceLow, overflow, topPrice } = network;
  const { nodes, low, high } = level;
  // Engines first, cells after them.
  const end = tree.next[tree.last[top]!]!;
  let engines = 0;
  let count = 0;
  let wanted = 0;
  let lo = Number.POSITIVE_INFINITY;
  let hi = Number.NEGATIVE_INFINITY;
  let shedFrom = Number.POSITIVE_INFINITY;
  let node = top;
  do {
    wanted += supply[node]!;
    if (node >= cells) {
      const engine = node - cells;
      nodes[engines++] = node;
      const first = pieceStart[engine]!;
      const least = (first < pieceStart[engine + 1]! ? pieceLow[first]! : overflow[engine]!) - price[node]!;
      if (least < lo) lo = least;
      const most = overflow[engine]! - price[node]!;
      if (most > hi) hi = most;
    }
    node = tree.next[node]!;
  } while (node !== end);
  count = engines;
  node = top;
  do {
    if (node < cells) {
      nodes[count++] = node;
      const least = shedMs[node]! - price[node]!;
      if (least < shedFrom) shedFrom = least;
      if (least < lo) lo = least;
      const most = least + shedStepMs * (shedSteps - 1);
      if (most > hi) hi = most;
    }
    node = tree.next[node]!;
  } while (node !== end);

  level.partShed = -1;
  if (wanted <= 0) {
    for (let i = 0; i < count; i++) sink[nodes[i]!] = 0;
    return lo;
  }
  const tolerance = PRICE_TOLERANCE * topPrice + 1e-12;
  const slack = 0.5 + wanted * 2 ** -47;
  lo -= tolerance;
  hi += tolerance;
  let theta = Math.min(hi, Math.max(lo, 0));
  let jumps = false;
  for (let step = 0; step < MOST_STEPS; step++) {
    const off = sum(network, level, engines, theta < shedFrom ? engines : count, theta, high) - wanted;
    if (off <= slack && off >= -slack) break;
    if (off < 0) lo = theta;
    else hi = theta;
    if (hi - lo <= tolerance) {
      jumps = true;
      break;
    }
    let to: number;
    if (level.rate > 0) to = theta - off / level.rate;
    else if (off < 0)
      to = Math.min(level.above, shedFrom > theta ? shedFrom : Number.POSITIVE_INFINITY) + tolerance / 4;
    else to = level.below - tolerance / 4;
    if (!(to > lo && to < hi) || (step >= NEWTON_STEPS && step % 2 === 0)) to = lo + (hi - lo) / 2;
    theta = to;
  }
  if (theta < shedFrom) for (let i = engines; i < count; i++) high[i] = 0;
  if (jumps) {
    theta = hi;
    sum(network, level, engines, count, lo, low);
    sum(network, level, engines, count, hi, high);
  } else for (let i = 0; i < count; i++) low[i] = high[i]!;
  divide(network, level, engines, count, wanted);
  return theta;
}

/** Σ y_v(w_v + θ) over the first `count` nodes, each y_v to `out`. */
function sum(network: Network, level: Level, engines: number, count: number, theta: number, out: Float64Array): number {
  const { cells, price, shedMs, shedStepMs, shedSteps, demand, pieceStart, capacity, overflow } = network;
  const { pieceFrom, pieceTo, pieceLow, pieceHigh } = network;
  const { nodes } = level;
  let total = 0;
  let rate = 0;
  let below = Number.NEGATIVE_INFINITY;
  let above = Number.POSITIVE_INFINITY;
  for (let i = 0; i < engines; i++) {
    const node = nodes[i]!;
    const engine = node - cells;
    const w = price[node]!;
    const at = w + theta;
    const end = pieceStart[engine + 1]!;
    let piece = pieceStart[engine]!;
    let load = capacity[engine]!;
    let down = Number.NEGATIVE_INFINITY;
    let up = overflow[engine]!;
    // The first piece that ends above this price; before it lies a jump of the marginal, or the price is in it.
    while (piece < end && pieceHigh[piece]! <= at) down = pieceHigh[piece++]!;
    if (piece < end) {
      load = pieceFrom[piece]!;
      up = pieceLow[piece]!;
      if (up <= at) {
        const steep = (pieceTo[piece]! - load) / (pieceHigh[piece]! - up);
        down = up;
        up = pieceHigh[piece]!;
        load += steep * (at - down);
        rate += steep;
      }
    } else if (up <= at) {
      down = up;
      up = Number.POSITIVE_INFINITY;
      load = ENDLESS;
    }
    if (down - w > below) below = down - w;
    if (up - w < above) above = up - w;
    total += load;
    out[i] = load;
  }
  for (let i = engines; i < count; i++) {
    const cell = nodes[i]!;
    const w = price[cell]!;
    const over = w + theta - shedMs[cell]!;
    let load = 0;
    if (over < 0) {
      if (shedMs[cell]! - w < above) above = shedMs[cell]! - w;
    } else {
      let steps = shedSteps;
      if (shedStepMs > 0) steps = Math.min(shedSteps, Math.floor(over / shedStepMs) + 1);
      load = Math.floor((demand[cell]! * steps) / shedSteps);
      const down = shedMs[cell]! + shedStepMs * (steps - 1) - w;
      if (down > below) below = down;
      if (steps < shedSteps && down + shedStepMs < above) above = down + shedStepMs;
    }
    total += load;
    out[i] = load;
  }
  level.rate = rate;
  level.below = below;
  level.above = above;
  return total;
}

/** Whole sink flows between `low` and `high` that come to `wanted`. */
function divide(network: Network, level: Level, engines: number, count: number, wanted: number): void {
  const { cells, sink, capacity } = network;
  const { nodes, low, high } = level;
  let rest = wanted;
  for (let i = 0; i < count; i++) {
    const node = nodes[i]!;
    const least = Math.floor(low[i]!);
    const most = Math.floor(high[i]!);
    // Engines stay as near as may be to what they carry; a cell's shed stands on a step.
    let flow = sink[node]!;
    if (flow < least) flow = least;
    else if (flow > most) flow = most;
    else if (i >= engines && flow > least && flow < most) flow = least;
    sink[node] = flow;
    rest -= flow;
  }
  for (let i = 0; i < count && rest !== 0; i++) {
    const node = nodes[i]!;
    const least = Math.floor(low[i]!);
    const most = Math.floor(high[i]!);
    const flow = Math.min(most, Math.max(least, sink[node]! + rest));
    rest -= flow - sink[node]!;
    sink[node] = flow;
    if (i >= engines && flow > least && flow < most) level.partShed = node;
  }
  // What is left are roundings: by the quantum, first to loads that were cut to whole quanta, then to any with room.
  for (let i = 0; i < engines && rest > 0; i++) {
    const node = nodes[i]!;
    if (high[i]! > sink[node]! && sink[node]! < capacity[node - cells]!) {
      sink[node] = sink[node]! + 1;
      rest--;
    }
  }
  for (let i = 0; i < engines && rest !== 0; i++) {
    const node = nodes[i]!;
    const flow = Math.min(Math.max(capacity[node - cells]!, sink[node]!), Math.max(0, sink[node]! + rest));
    rest -= flow - sink[node]!;
    sink[node] = flow;
  }
  if (rest === 0) return;
  // No engine has room for the last quanta: a cell sheds them, or, where there is none, the load is over capacity.
  const last = nodes[count - 1]!;
  sink[last] = sink[last]! + rest;
  if (last < cells) level.partShed = last;
}

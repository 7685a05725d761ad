import type { Network } from "./network.ts";

/**
 * What the present flows cost and a bound below any flows' cost, both for the problem as given, before rounding.
 *
 * For any engine prices w and any π_k ≤ min_e(c_ke + m_ke + w_e):
 *
 *     LB = Σ_k (d_k/J)·Σ_{j<J} min(p_k(j/J), π_k) + Σ_ke ẑ_ke·min(0, c_ke + w_e − π_k) − Σ_e φ*_e(w_e)
 *     φ*_e(w) = max over 0 ≤ y ≤ U_e of w·y − φ_e(y)
 *
 * Without churn m = ẑ = 0 and the best π_k is that minimum. With churn it is the tree's price, held to the minimum. The
 * arcs of an engine without capacity carry nothing and don't bind π.
 */

/** LB, ms per second, from prices of the network's nodes: the tree's, or `pricesAtLoads`. */
export function lowerBound(network: Network, price: Float64Array = network.price): number {
  const { cells, engines, root, arcStart, arcNode, arcBase, churn, capacity, demandExact, scale } = network;
  const base = price[root]!;
  let total = 0;
  for (let cell = 0; cell < cells; cell++) {
    const end = arcStart[cell + 1]!;
    let pi = Number.POSITIVE_INFINITY;
    if (churn === null) {
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const node = arcNode[arc]!;
        const through = arcBase[arc]! + price[node]!;
        if (through < pi && capacity[node - cells]! > 0) pi = through;
      }
      pi -= base;
    } else {
      pi = price[cell]! - base;
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const node = arcNode[arc]!;
        const through = arcBase[arc]! + churn.moveMs[arc]! + price[node]! - base;
        if (through < pi && capacity[node - cells]! > 0) pi = through;
      }
      for (let arc = arcStart[cell]!; arc < end; arc++) {
        const held = churn.referenceExact[arc]!;
        if (!(held > 0) || !(capacity[arcNode[arc]! - cells]! > 0)) continue;
        const less = arcBase[arc]! + price[arcNode[arc]!]! - base - pi;
        if (less < 0) total += held * less;
      }
    }
    total += demandExact[cell]! * meanPrice(network, cell, pi);
  }
  for (let engine = 0; engine < engines; engine++) total -= conjugate(network, engine, price[cells + engine]! - base);
  return total / scale;
}

/**
 * Copies the prices to `out`, those of engines moved into what their marginals at their present loads allow. A price that
 * is off by rounding alone costs the bound that rounding on all of a flat curve's capacity, however little of it is used;
 * from these prices it costs it on the demand only.
 */
export function pricesAtLoads(network: Network, out: Float64Array): void {
  const { cells, engines, root, price, sink, pieceStart, pieceFrom, pieceTo, pieceLow, pieceHigh } = network;
  const base = price[root]!;
  out.set(price);
  for (let engine = 0; engine < engines; engine++) {
    const load = sink[cells + engine]!;
    const end = pieceStart[engine + 1]!;
    let piece = pieceStart[engine]!;
    let least = 0;
    let most = Number.POSITIVE_INFINITY;
    while (piece < end && pieceTo[piece]! <= load) least = pieceHigh[piece++]!;
    if (piece < end) {
      const part = (load - pieceFrom[piece]!) / (pieceTo[piece]! - pieceFrom[piece]!);
      most = pieceLow[piece]! + part * (pieceHigh[piece]! - pieceLow[piece]!);
      if (load > pieceFrom[piece]!) least = most;
    }
    out[cells + engine] = base + Math.min(Math.max(price[cells + engine]! - base, least), most);
  }
}

/** (1/J)·Σ_j min(p_k(j/J), π). */
function meanPrice({ shedMs, shedStepMs, shedSteps }: Network, cell: number, pi: number): number {
  if (pi <= shedMs[cell]!) return pi;
  let total = 0;
  for (let step = 0; step < shedSteps; step++) total += Math.min(pi, shedMs[cell]! + shedStepMs * step);
  return total / shedSteps;
}

/** φ*(w), ms × quanta. */
function conjugate(network: Network, engine: number, w: number): number {
  const { pieceStart, pieceLow, pieceHigh, pieceValue, exactFrom, exactTo } = network;
  const end = pieceStart[engine + 1]!;
  let piece = pieceStart[engine]!;
  if (piece === end || w <= pieceLow[piece]!) return 0;
  // The last piece that begins below this price; the best load is in it or at its end.
  while (piece + 1 < end && pieceLow[piece + 1]! < w) piece++;
  const length = exactTo[piece]! - exactFrom[piece]!;
  const rise = pieceHigh[piece]! - pieceLow[piece]!;
  const part = w < pieceHigh[piece]! ? (length * (w - pieceLow[piece]!)) / rise : length;
  return w * (exactFrom[piece]! + part) - pieceValue[piece]! - part * (pieceLow[piece]! + (part * rise) / (2 * length));
}

/** φ(y), ms × quanta, at a load in (not necessarily whole) quanta; beyond the capacity the last piece goes on. */
export function engineCost(network: Network, engine: number, load: number): number {
  const { pieceStart, pieceLow, pieceHigh, pieceValue, exactFrom, exactTo } = network;
  const end = pieceStart[engine + 1]!;
  let piece = pieceStart[engine]!;
  if (piece === end) return 0;
  while (piece + 1 < end && exactFrom[piece + 1]! <= load) piece++;
  const part = load - exactFrom[piece]!;
  const length = exactTo[piece]! - exactFrom[piece]!;
  const rise = pieceHigh[piece]! - pieceLow[piece]!;
  return pieceValue[piece]! + part * (pieceLow[piece]! + (part * rise) / (2 * length));
}

/** φ(y), and the price of overflow on what is beyond the capacity. */
function loadCost(network: Network, engine: number, load: number): number {
  const over = load - network.capacity[engine]!;
  if (over <= 0) return engineCost(network, engine, load);
  return engineCost(network, engine, network.capacity[engine]!) + over * network.overflow[engine]!;
}

/** P_k(s), ms × quanta. */
export function shedCost(network: Network, cell: number, shed: number): number {
  const { shedMs, shedStepMs, shedSteps, demandExact } = network;
  let total = shedMs[cell]! * shed;
  const width = demandExact[cell]! / shedSteps;
  for (let step = 1; step < shedSteps && shed > width * step; step++) total += shedStepMs * (shed - width * step);
  return total;
}

/** F of the present flows, ms per second: tree arcs, arcs at their reference, sinks. */
export function objective(network: Network): number {
  const { cells, engines, root, tree, sink, arcBase, churn, arcCell, arcNode, scale } = network;
  let total = 0;
  for (let node = 0; node < root; node++) {
    const arc = tree.arc[node]!;
    if (arc < 0) continue;
    total += arcBase[arc]! * tree.flow[node]!;
    if (churn !== null) {
      const over = tree.flow[node]! - churn.referenceExact[arc]!;
      if (over > 0) total += churn.moveMs[arc]! * over;
    }
  }
  if (churn !== null) {
    for (let arc = 0; arc < churn.reference.length; arc++) {
      if (churn.beyond[arc] === 0 || churn.reference[arc] === 0) continue;
      if (tree.arc[arcCell[arc]!] === arc || tree.arc[arcNode[arc]!] === arc) continue;
      total += arcBase[arc]! * churn.reference[arc]!;
    }
  }
  for (let cell = 0; cell < cells; cell++) total += shedCost(network, cell, sink[cell]!);
  for (let engine = 0; engine < engines; engine++) total += loadCost(network, engine, sink[cells + engine]!);
  return total / scale;
}

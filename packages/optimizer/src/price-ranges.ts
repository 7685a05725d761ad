import { type Flows, lowerBound } from "./bound.ts";
import { type EngineCost, leftMarginalAt, marginalAt } from "./engine-cost.ts";
import type { Problem } from "./problem.ts";
import { shedPrice } from "./shed.ts";

/**
 * How far the prices of an optimum are free. On a knot, at a full engine or on a step of the shed price the cost has two
 * slopes, and any price between them proves the same bound. With one unit more or less of demand,
 *
 *     one more  = least cost of a way for one unit from the node to the outside, through what the plan may still change
 *     one fewer = the same the other way round: what taking one unit away saves
 *
 * a shortest path each, over the arcs that may take more and the arcs in use that may give some back. In units of work.
 */
export interface PriceRanges {
  readonly cellLowMs: Float64Array;
  /** Infinite where one more can't be had at all. */
  readonly cellHighMs: Float64Array;
  readonly engineLowMs: Float64Array;
  readonly engineHighMs: Float64Array;
}

/** What counts as nothing, or as being on a knot: `part` of an engine's capacity or a cell's demand, and `slackWps` besides. */
export interface Tolerance {
  readonly part: number;
  /** Per engine. */
  readonly slackWps?: Float64Array;
}

const EXACT: Tolerance = { part: 1e-9 };

/**
 * @param flows an optimum, up to `tolerance`
 * @param priceMs prices that prove it
 */
export function priceRanges(
  problem: Problem,
  flows: Flows,
  priceMs: Float64Array,
  costs: readonly EngineCost[],
  tolerance: Tolerance = EXACT,
): PriceRanges {
  const cells = problem.demandWps.length;
  const demandMs = demandPrices(problem, flows, priceMs, costs);
  const graph = residual(problem, flows, demandMs, priceMs, costs, tolerance);
  const more = distances(graph.arriving, cells + priceMs.length);
  const fewer = distances(graph.leaving, cells + priceMs.length);
  const add = (prices: Float64Array, distance: Float64Array, from: number, sign: 1 | -1) =>
    prices.map((price, at) => (distance[from + at]! < NOISE_MS ? price : price + sign * distance[from + at]!));
  return {
    cellLowMs: add(demandMs, fewer, 0, -1),
    cellHighMs: add(demandMs, more, 0, 1),
    engineLowMs: add(priceMs, fewer, cells, -1),
    engineHighMs: add(priceMs, more, cells, 1),
  };
}

/**
 * The canonical choice among prices that prove the same: of every engine the lowest, of an idle engine its marginal at no
 * load. Where rounding would cost some of the bound the prices stay as they are.
 */
export function lowestPrices(
  problem: Problem,
  flows: Flows,
  priceMs: Float64Array,
  costs: readonly EngineCost[],
): { priceMs: Float64Array; lowerBoundMs: number } {
  const present = { priceMs, lowerBoundMs: lowerBound(problem, priceMs, costs).lowerBoundMs };
  const { engineLowMs } = priceRanges(problem, flows, priceMs, costs);
  const lowest = priceMs.map((price, engine) => {
    const cost = costs[engine]!;
    if (cost.capacityWps === 0) return price;
    const idleMs = cost.pieces[0]!.slopeMs;
    if (flows.loadWps[engine]! <= EXACT.part * cost.capacityWps) return idleMs;
    return Math.max(idleMs, engineLowMs[engine]!);
  });
  const lowerBoundMs = lowerBound(problem, lowest, costs).lowerBoundMs;
  const isGood = lowerBoundMs >= present.lowerBoundMs - LOST * Math.abs(present.lowerBoundMs);
  return isGood ? { priceMs: lowest, lowerBoundMs } : present;
}

/** Distances below this are rounding, ms. */
const NOISE_MS = 1e-7;
/** The part of the bound that the choice of prices may cost. */
const LOST = 1e-10;

/** π_k, held to the shed price of the step that the cell is in. */
function demandPrices(
  problem: Problem,
  { shedWps }: Flows,
  priceMs: Float64Array,
  costs: readonly EngineCost[],
): Float64Array {
  return lowerBound(problem, priceMs, costs).demandPriceMs.map((price, cell) => {
    const demand = problem.demandWps[cell]!;
    return Math.min(price, shedPrice(problem, cell, demand > 0 ? shedWps[cell]! / demand : 0));
  });
}

/** An edge that may be used, from or to a node, with its reduced cost: 0 where prices already pay for it exactly. */
interface Edge {
  readonly node: number;
  readonly ms: number;
}

interface Residual {
  /** By node: where a unit could come from, the root being the last node. */
  readonly arriving: Edge[][];
  /** By node: where a unit could go. */
  readonly leaving: Edge[][];
}

function residual(
  problem: Problem,
  { flowWps, shedWps, loadWps }: Flows,
  demandMs: Float64Array,
  priceMs: Float64Array,
  costs: readonly EngineCost[],
  { part, slackWps }: Tolerance,
): Residual {
  const cells = problem.demandWps.length;
  const root = cells + priceMs.length;
  const arriving: Edge[][] = Array.from({ length: root + 1 }, () => []);
  const leaving: Edge[][] = Array.from({ length: root + 1 }, () => []);
  const join = (from: number, to: number, ms: number): void => {
    const reduced = Math.max(0, ms);
    arriving[to]!.push({ node: from, ms: reduced });
    leaving[from]!.push({ node: to, ms: reduced });
  };
  for (let cell = 0; cell < cells; cell++) {
    const demand = problem.demandWps[cell]!;
    const pi = demandMs[cell]!;
    const tiny = part * demand;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const engine = problem.arcEngine[arc]!;
      if (costs[engine]!.capacityWps === 0) continue;
      const over = problem.arcCostMs[arc]! + priceMs[engine]! - pi;
      const flow = flowWps[arc]!;
      const move = problem.churn?.moveMs[arc] ?? 0;
      const held = problem.churn?.referenceWps[arc] ?? 0;
      join(cell, cells + engine, over + (flow >= held - tiny ? move : 0));
      if (flow > tiny) join(cells + engine, cell, -over - (flow > held + tiny ? move : 0));
    }
    const shed = shedWps[cell]!;
    const at = (wps: number): number => shedPrice(problem, cell, demand > 0 ? Math.max(0, wps / demand) : 0);
    // However much is shed already: one more can be shed as well.
    join(cell, root, at(shed + tiny) - pi);
    if (shed > tiny) join(root, cell, pi - at(shed - tiny));
  }
  for (const [engine, cost] of costs.entries()) {
    const { capacityWps } = cost;
    if (capacityWps === 0) continue;
    const tiny = part * capacityWps + (slackWps?.[engine] ?? 0);
    // A load this near to a knot is on it; inside a piece the slope is one.
    const knot = cost.pieces.find(({ fromWps }) => Math.abs(fromWps - loadWps[engine]!) <= tiny);
    const load = knot?.fromWps ?? loadWps[engine]!;
    const price = priceMs[engine]!;
    if (load < capacityWps - tiny) join(cells + engine, root, marginalAt(cost, load) - price);
    if (load > 0)
      join(root, cells + engine, price - (knot === undefined ? marginalAt(cost, load) : leftMarginalAt(cost, load)));
  }
  return { arriving, leaving };
}

/** Least sum of edges between the root, the last node, and every other (Dijkstra's method, binary heap). */
function distances(edges: readonly (readonly Edge[])[], root: number): Float64Array {
  const distance = new Float64Array(root + 1).fill(Number.POSITIVE_INFINITY);
  distance[root] = 0;
  const heap: Edge[] = [{ node: root, ms: 0 }];
  while (heap.length > 0) {
    const { node, ms } = pop(heap);
    if (ms > distance[node]!) continue;
    for (const edge of edges[node]!) {
      const next = ms + edge.ms;
      if (next >= distance[edge.node]!) continue;
      distance[edge.node] = next;
      push(heap, { node: edge.node, ms: next });
    }
  }
  return distance;
}

function push(heap: Edge[], item: Edge): void {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const above = (at - 1) >>> 1;
    if (heap[above]!.ms <= item.ms) break;
    heap[at] = heap[above]!;
    at = above;
  }
  heap[at] = item;
}

function pop(heap: Edge[]): Edge {
  const first = heap[0]!;
  const last = heap.pop()!;
  if (heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    if (below >= heap.length) break;
    if (below + 1 < heap.length && heap[below + 1]!.ms < heap[below]!.ms) below++;
    if (heap[below]!.ms >= last.ms) break;
    heap[at] = heap[below]!;
    at = below;
  }
  heap[at] = last;
  return first;
}

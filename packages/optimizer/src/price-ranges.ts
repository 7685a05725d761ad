import { type Flows, lowerBound } from "./bound.ts";
import { kinksOf, leftMarginalAt, marginalAt } from "./engine-cost.ts";
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
  tolerance: Tolerance = EXACT,
): PriceRanges {
  const plan = openPlan(problem, flows, priceMs, tolerance);
  const fewer = distances(plan.root, (node, relax) => leave(plan, node, relax));
  const sources = arcsByEngine(problem);
  const more = distances(plan.root, (node, relax) => arrive(plan, sources, node, relax));
  const { cells } = plan;
  return {
    cellLowMs: shift(plan.demandMs, fewer, 0, -1),
    cellHighMs: shift(plan.demandMs, more, 0, 1),
    engineLowMs: shift(priceMs, fewer, cells, -1),
    engineHighMs: shift(priceMs, more, cells, 1),
  };
}

function shift(prices: Float64Array, distance: Float64Array, from: number, sign: 1 | -1): Float64Array {
  return prices.map((price, at) => (distance[from + at]! < NOISE_MS ? price : price + sign * distance[from + at]!));
}

/**
 * The canonical choice among prices that prove the same: of every engine the lowest, of an idle engine its marginal at no
 * load. Where rounding would cost some of the bound the prices stay as they are.
 */
export function lowestPrices(
  problem: Problem,
  flows: Flows,
  priceMs: Float64Array,
): { priceMs: Float64Array; lowerBoundMs: number } {
  const present = { priceMs, lowerBoundMs: lowerBound(problem, priceMs).lowerBoundMs };
  const plan = openPlan(problem, flows, priceMs, EXACT);
  const fewer = distances(plan.root, (node, relax) => leave(plan, node, relax));
  const engineLowMs = shift(priceMs, fewer, plan.cells, -1);
  const lowest = priceMs.map((price, engine) => {
    const capacityWps = problem.curves.capacityWps[engine]!;
    if (capacityWps === 0) return price;
    const idleMs = marginalAt(problem.curves, engine, 0);
    if (flows.loadWps[engine]! <= EXACT.part * capacityWps) return idleMs;
    return Math.max(idleMs, engineLowMs[engine]!);
  });
  const lowerBoundMs = lowerBound(problem, lowest).lowerBoundMs;
  const isGood = lowerBoundMs >= present.lowerBoundMs - LOST * Math.abs(present.lowerBoundMs);
  return isGood ? { priceMs: lowest, lowerBoundMs } : present;
}

/** Distances below this are rounding, ms. */
const NOISE_MS = 1e-7;
/** The part of the bound that the choice of prices may cost. */
const LOST = 1e-10;

/** π_k, held to the shed price of the step that the cell is in. */
function demandPrices(problem: Problem, { shedWps }: Flows, priceMs: Float64Array): Float64Array {
  return lowerBound(problem, priceMs).demandPriceMs.map((price, cell) => {
    const demand = problem.demandWps[cell]!;
    return Math.min(price, shedPrice(problem, cell, demand > 0 ? shedWps[cell]! / demand : 0));
  });
}

/**
 * What the plan may still change. Edges have reduced costs, which prices make 0 or more, up to rounding: 0 where they pay
 * for it exactly. Nodes are cells, then engines, then the outside.
 */
interface OpenPlan {
  readonly problem: Problem;
  readonly cells: number;
  readonly root: number;
  readonly flowWps: Float64Array;
  readonly demandMs: Float64Array;
  readonly priceMs: Float64Array;
  /** Flows of less are none. */
  readonly part: number;
  /** Arcs in use, by engine. */
  readonly used: ReadonlyMap<number, readonly number[]>;
  /** Reduced cost from a node to the outside, and back; infinite where there is no way. */
  readonly outMs: Float64Array;
  readonly inMs: Float64Array;
}

function openPlan(
  problem: Problem,
  { flowWps, shedWps, loadWps }: Flows,
  priceMs: Float64Array,
  { part, slackWps }: Tolerance,
): OpenPlan {
  const cells = problem.demandWps.length;
  const root = cells + priceMs.length;
  const demandMs = demandPrices(problem, { flowWps, shedWps, loadWps }, priceMs);
  const outMs = new Float64Array(root).fill(Number.POSITIVE_INFINITY);
  const inMs = new Float64Array(root).fill(Number.POSITIVE_INFINITY);
  const used = new Map<number, number[]>();
  for (let cell = 0; cell < cells; cell++) {
    const demand = problem.demandWps[cell]!;
    const tiny = part * demand;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      if (!(flowWps[arc]! > tiny)) continue;
      const engine = problem.arcEngine[arc]!;
      const list = used.get(engine);
      if (list === undefined) used.set(engine, [arc]);
      else list.push(arc);
    }
    const shed = shedWps[cell]!;
    const at = (wps: number): number => shedPrice(problem, cell, demand > 0 ? Math.max(0, wps / demand) : 0);
    // However much is shed already: one more can be shed as well.
    outMs[cell] = Math.max(0, at(shed + tiny) - demandMs[cell]!);
    if (shed > tiny) inMs[cell] = Math.max(0, demandMs[cell]! - at(shed - tiny));
  }
  const { curves } = problem;
  for (const [engine, capacityWps] of curves.capacityWps.entries()) {
    if (capacityWps === 0) continue;
    const tiny = part * capacityWps + (slackWps?.[engine] ?? 0);
    // A load this near to a knot is on it; inside a piece the slope is one.
    const kink = kinksOf(curves, engine).find((wps) => Math.abs(wps - loadWps[engine]!) <= tiny);
    const load = kink ?? loadWps[engine]!;
    const price = priceMs[engine]!;
    if (load < capacityWps - tiny) outMs[cells + engine] = Math.max(0, marginalAt(curves, engine, load) - price);
    if (load > 0) {
      const left = (kink === undefined ? marginalAt : leftMarginalAt)(curves, engine, load);
      inMs[cells + engine] = Math.max(0, price - left);
    }
  }
  return { problem, cells, root, flowWps, demandMs, priceMs, part, used, outMs, inMs };
}

type Relax = (node: number, ms: number) => void;

/** c + w − π of an arc, and m where the flow has reached its reference: what one unit more costs beyond the price. */
function moreMs({ problem, flowWps, demandMs, priceMs, part }: OpenPlan, cell: number, arc: number): number {
  const { arcCostMs, arcEngine, churn, demandWps } = problem;
  const over = arcCostMs[arc]! + priceMs[arcEngine[arc]!]! - demandMs[cell]!;
  const atReference = churn !== undefined && flowWps[arc]! >= churn.referenceWps[arc]! - part * demandWps[cell]!;
  return Math.max(0, atReference ? over + churn.moveMs[arc]! : over);
}

/** The same of giving one unit back, which an arc in use can. */
function lessMs({ problem, flowWps, demandMs, priceMs, part }: OpenPlan, cell: number, arc: number): number {
  const { arcCostMs, arcEngine, churn, demandWps } = problem;
  const over = arcCostMs[arc]! + priceMs[arcEngine[arc]!]! - demandMs[cell]!;
  const isBeyond = churn !== undefined && flowWps[arc]! > churn.referenceWps[arc]! + part * demandWps[cell]!;
  return Math.max(0, isBeyond ? -over - churn.moveMs[arc]! : -over);
}

/** Every way by which a unit may leave a node. */
function leave(plan: OpenPlan, node: number, relax: Relax): void {
  const { problem, cells, root, inMs, outMs, used } = plan;
  if (node === root) {
    for (let other = 0; other < root; other++) if (inMs[other]! < Number.POSITIVE_INFINITY) relax(other, inMs[other]!);
    return;
  }
  if (outMs[node]! < Number.POSITIVE_INFINITY) relax(root, outMs[node]!);
  if (node >= cells) {
    for (const arc of used.get(node - cells) ?? []) {
      const cell = cellOf(problem, arc);
      relax(cell, lessMs(plan, cell, arc));
    }
    return;
  }
  const { arcStart, arcEngine, curves } = problem;
  for (let arc = arcStart[node]!; arc < arcStart[node + 1]!; arc++) {
    const engine = arcEngine[arc]!;
    if (curves.capacityWps[engine]! > 0) relax(cells + engine, moreMs(plan, node, arc));
  }
}

/** Every node from which a unit may come to this one. */
function arrive(plan: OpenPlan, sources: ReadonlyMap<number, readonly number[]>, node: number, relax: Relax): void {
  const { problem, cells, root, flowWps, inMs, outMs, part } = plan;
  if (node === root) {
    for (let other = 0; other < root; other++)
      if (outMs[other]! < Number.POSITIVE_INFINITY) relax(other, outMs[other]!);
    return;
  }
  if (inMs[node]! < Number.POSITIVE_INFINITY) relax(root, inMs[node]!);
  if (node >= cells) {
    if (!(problem.curves.capacityWps[node - cells]! > 0)) return;
    for (const arc of sources.get(node - cells) ?? []) {
      const cell = cellOf(problem, arc);
      relax(cell, moreMs(plan, cell, arc));
    }
    return;
  }
  for (let arc = problem.arcStart[node]!; arc < problem.arcStart[node + 1]!; arc++) {
    if (flowWps[arc]! > part * problem.demandWps[node]!)
      relax(cells + problem.arcEngine[arc]!, lessMs(plan, node, arc));
  }
}

function arcsByEngine({ arcEngine }: Problem): Map<number, number[]> {
  const arcs = new Map<number, number[]>();
  for (const [arc, engine] of arcEngine.entries()) {
    const list = arcs.get(engine);
    if (list === undefined) arcs.set(engine, [arc]);
    else list.push(arc);
  }
  return arcs;
}

/** The cell that an arc belongs to. */
function cellOf({ arcStart }: Problem, arc: number): number {
  let low = 0;
  let high = arcStart.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (arcStart[middle]! <= arc) low = middle;
    else high = middle;
  }
  return low;
}

interface Reached {
  readonly node: number;
  readonly ms: number;
}

/** Least sum of edges between the root, the last node, and every other (Dijkstra's method, binary heap). */
function distances(root: number, edges: (node: number, relax: Relax) => void): Float64Array {
  const distance = new Float64Array(root + 1).fill(Number.POSITIVE_INFINITY);
  distance[root] = 0;
  const heap: Reached[] = [{ node: root, ms: 0 }];
  while (heap.length > 0) {
    const { node, ms } = pop(heap);
    if (ms > distance[node]!) continue;
    edges(node, (other, step) => {
      const next = ms + step;
      if (next >= distance[other]!) return;
      distance[other] = next;
      push(heap, { node: other, ms: next });
    });
  }
  return distance;
}

function push(heap: Reached[], item: Reached): void {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const above = (at - 1) >>> 1;
    if (heap[above]!.ms <= item.ms) break;
    heap[at] = heap[above]!;
    at = above;
  }
  heap[at] = item;
}

function pop(heap: Reached[]): Reached {
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

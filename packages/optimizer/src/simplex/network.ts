import type { Problem } from "../problem.ts";
import { createTree, type Tree } from "./tree.ts";

/**
 * The problem as a pure network with whole-number flows.
 *
 *     minimise  Σ_a cost_a(z_a) + Σ_e φ_e(y_e) + Σ_k P_k(s_k)
 *
 * Nodes: cells 0 … K−1, engines K … K+E−1, one root (number K+E) where all flow ends. Arcs: cell → engine, and from
 * every cell and engine one *sink arc* to the root: the shed of a cell, the load of an engine. All costs are convex.
 *
 * Flows are whole numbers of one *quantum*, 2⁻ˣ work units/s with x such that all demand together is 2⁴⁹ … 2⁵⁰ quanta.
 * Sums of them are exact in a double, so that conservation is exact and a tie in a ratio test is a tie. The scale is a
 * power of two: `wps × scale` is exact too. Demand is rounded up and capacity down, hence what is carried fits.
 * Costs are ms per unit of work throughout; sums over flows are in ms × quanta, and ÷ scale gives ms per second.
 *
 * φ_e is piecewise quadratic: on piece j its marginal goes in a straight line from `pieceLow[j]` to `pieceHigh[j]`.
 * Where Q has a knot it jumps: pieceHigh[j] < pieceLow[j + 1].
 */
export interface Network {
  readonly cells: number;
  readonly engines: number;
  /** Number of the root node: cells + engines. */
  readonly root: number;
  readonly scale: number;

  /** Cell k's arcs are `arcStart[k] .. arcStart[k + 1]`. */
  readonly arcStart: Uint32Array;
  readonly arcCell: Uint32Array;
  /** Node number of the arc's engine. */
  readonly arcNode: Uint32Array;
  /** c: the price of the arc's first unit where it has a reference, ms. */
  readonly arcBase: Float64Array;
  /** The price of its next unit, ms: c, or c + m beyond the reference. Without churn the same array as `arcBase`. */
  readonly arcNext: Float64Array;
  readonly churn: ChurnArcs | null;

  /** d_k in quanta, and before rounding. */
  readonly demand: Float64Array;
  readonly demandExact: Float64Array;

  /** Largest load in quanta, one per engine. */
  readonly capacity: Float64Array;
  /** Engine e's pieces are `pieceStart[e] .. pieceStart[e + 1]`; none for an engine without capacity. */
  readonly pieceStart: Uint32Array;
  /** Whole quanta. */
  readonly pieceFrom: Float64Array;
  readonly pieceTo: Float64Array;
  /** φ′ at the two ends, ms. */
  readonly pieceLow: Float64Array;
  readonly pieceHigh: Float64Array;
  /** The ends before rounding, and φ at the exact start, ms × quanta: what the certificate uses. */
  readonly exactFrom: Float64Array;
  readonly exactTo: Float64Array;
  readonly pieceValue: Float64Array;
  /** Price of load beyond capacity, ms, one per engine: above any price of shedding, so that none is left at the end. */
  readonly overflow: Float64Array;

  /** Price of the first unit shed, ms, one per cell; it rises by `shedStepMs` in each of `shedSteps` parts. */
  readonly shedMs: Float64Array;
  readonly shedStepMs: number;
  readonly shedSteps: number;
  /** The largest price that shedding can have: the scale of prices. */
  readonly topPrice: number;

  /** Sink flow of every node in quanta: what is shed, the load. Between the phases this is the truth. */
  readonly sink: Float64Array;
  /** Price of one more unit at the node, ms, less `price[root]` (which moves, so that a pivot can shift the smaller side). */
  readonly price: Float64Array;
  readonly tree: Tree;
}

/**
 * One-sided churn: an arc's first ẑ units cost c, those beyond c + m. In the tree its flow moves inside one of the two
 * segments; outside the tree it rests at 0 or at ẑ.
 */
export interface ChurnArcs {
  /** ẑ in quanta, rounded down. */
  readonly reference: Float64Array;
  readonly referenceExact: Float64Array;
  readonly moveMs: Float64Array;
  /** 1: the arc is in (or, outside the tree, at the start of) the segment beyond ẑ. Always 1 where ẑ = 0. */
  readonly beyond: Uint8Array;
}

export function createNetwork(problem: Problem): Network {
  const cells = problem.demandWps.length;
  const engines = problem.curves.capacityWps.length;
  const arcs = problem.arcEngine.length;
  const root = cells + engines;
  const scale = quantaPerUnit(problem);

  const arcCell = new Uint32Array(arcs);
  const arcNode = new Uint32Array(arcs);
  let dearest = 0;
  for (let cell = 0; cell < cells; cell++) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      arcCell[arc] = cell;
      arcNode[arc] = cells + problem.arcEngine[arc]!;
      if (problem.arcCostMs[arc]! > dearest) dearest = problem.arcCostMs[arc]!;
    }
  }
  const churn = churnArcs(problem, scale);
  let arcNext = problem.arcCostMs;
  if (churn !== null) {
    arcNext = Float64Array.from(problem.arcCostMs);
    for (let arc = 0; arc < arcs; arc++) {
      const dear = problem.arcCostMs[arc]! + churn.moveMs[arc]!;
      if (dear > dearest) dearest = dear;
      if (churn.beyond[arc] === 1) arcNext[arc] = dear;
    }
  }

  const demand = new Float64Array(cells);
  const demandExact = new Float64Array(cells);
  let topPrice = 0;
  for (let cell = 0; cell < cells; cell++) {
    demandExact[cell] = problem.demandWps[cell]! * scale;
    demand[cell] = Math.ceil(demandExact[cell]!);
    if (problem.shedMs[cell]! > topPrice) topPrice = problem.shedMs[cell]!;
  }
  topPrice += problem.shedStepMs * Math.max(0, problem.shedSteps - 1);
  const pieces = cutCurves(problem, scale);
  const overflow = new Float64Array(engines);
  for (let engine = 0; engine < engines; engine++) {
    const last = pieces.pieceStart[engine + 1]! - 1;
    const steepest = last >= pieces.pieceStart[engine]! ? pieces.pieceHigh[last]! : 0;
    overflow[engine] = 2 * Math.max(topPrice + dearest + 1, steepest);
  }
  return {
    cells,
    engines,
    root,
    scale,
    arcStart: problem.arcStart,
    arcCell,
    arcNode,
    arcBase: problem.arcCostMs,
    arcNext,
    churn,
    demand,
    demandExact,
    ...pieces,
    overflow,
    shedMs: problem.shedMs,
    shedStepMs: problem.shedStepMs,
    shedSteps: Math.max(1, problem.shedSteps),
    topPrice,
    sink: new Float64Array(root),
    price: new Float64Array(root + 1),
    tree: createTree(root + 1),
  };
}

/** A power of two that makes all demand 2⁴⁹ … 2⁵⁰ quanta (all capacity, where there is no demand). */
function quantaPerUnit(problem: Problem): number {
  let total = 0;
  for (const demand of problem.demandWps) total += demand;
  if (!(total > 0)) for (const capacity of problem.curves.capacityWps) total += capacity;
  if (!(total > 0)) return 1;
  let scale = 1;
  while (total * scale < 2 ** 49) scale *= 2;
  while (total * scale >= 2 ** 50) scale /= 2;
  return scale;
}

function churnArcs(problem: Problem, scale: number): ChurnArcs | null {
  if (problem.churn === undefined || problem.arcEngine.length === 0) return null;
  const { referenceWps, moveMs } = problem.churn;
  const reference = new Float64Array(referenceWps.length);
  const referenceExact = new Float64Array(referenceWps.length);
  const beyond = new Uint8Array(referenceWps.length);
  for (let arc = 0; arc < referenceWps.length; arc++) {
    referenceExact[arc] = referenceWps[arc]! * scale;
    // A free move needs no second segment.
    reference[arc] = moveMs[arc]! > 0 ? Math.floor(referenceExact[arc]!) : 0;
    beyond[arc] = reference[arc]! > 0 ? 0 : 1;
  }
  return { reference, referenceExact, moveMs, beyond };
}

type Pieces = Pick<
  Network,
  | "capacity"
  | "pieceStart"
  | "pieceFrom"
  | "pieceTo"
  | "pieceLow"
  | "pieceHigh"
  | "exactFrom"
  | "exactTo"
  | "pieceValue"
>;

/** Cuts every φ at the knots of Q and where the ramp begins. A piece that rounds to nothing is left out. */
function cutCurves({ curves }: Problem, scale: number): Pieces {
  const { capacityWps, knotStart, knotRho, knotMs, headroom, headroomMs } = curves;
  const engines = capacityWps.length;
  const most = knotRho.length + 2 * engines;
  const pieceStart = new Uint32Array(engines + 1);
  const capacity = new Float64Array(engines);
  const [pieceFrom, pieceTo, pieceLow, pieceHigh] = [0, 1, 2, 3].map(() => new Float64Array(most)) as Columns4;
  const [exactFrom, exactTo, pieceValue] = [0, 1, 2].map(() => new Float64Array(most)) as Columns3;
  const rampRho = headroom > 0 && headroomMs > 0 ? Math.max(0, 1 - headroom) : 1;
  const rampSlope = headroom > 0 ? headroomMs / headroom : 0;
  let count = 0;
  for (let engine = 0; engine < engines; engine++) {
    const exact = capacityWps[engine]! * scale;
    const whole = Math.floor(exact);
    capacity[engine] = whole;
    const first = count;
    const end = knotStart[engine + 1]!;
    let knot = knotStart[engine]!;
    let rho = 0;
    let value = 0;
    while (rho < 1 && whole > 0) {
      let nextRho = 1;
      if (knot + 1 < end && knotRho[knot + 1]! < nextRho) nextRho = knotRho[knot + 1]!;
      if (rho < rampRho && rampRho < nextRho) nextRho = rampRho;
      // Beyond its last knot Q keeps the slope it had.
      const left = knot + 1 < end ? knot : knot - 1;
      let rise = 0;
      if (left >= knotStart[engine]!)
        rise = (knotMs[left + 1]! - knotMs[left]!) / (knotRho[left + 1]! - knotRho[left]!);
      if (rise < 0) rise = 0;
      const q = knotMs[knot]! + rise * (rho - knotRho[knot]!);
      const over = rho >= rampRho && rampSlope > 0 ? rho - 1 + headroom : 0;
      const ramp = rho >= rampRho ? rampSlope : 0;
      let low = q + rho * rise + ramp * over;
      let high = low + (2 * rise + ramp) * (nextRho - rho);
      // Rounding must not make a marginal fall.
      if (count > first && low < pieceHigh[count - 1]!) low = pieceHigh[count - 1]!;
      if (high < low) high = low;
      const from = count > first ? pieceTo[count - 1]! : 0;
      const to = nextRho < 1 ? Math.min(whole, Math.round(nextRho * exact)) : whole;
      const length = (nextRho - rho) * exact;
      if (to > from) {
        pieceFrom[count] = from;
        pieceTo[count] = to;
        pieceLow[count] = low;
        pieceHigh[count] = high;
        exactFrom[count] = rho * exact;
        exactTo[count] = nextRho * exact;
        pieceValue[count] = value;
        count++;
      }
      value += (length * (low + high)) / 2;
      rho = nextRho;
      if (knot + 1 < end && knotRho[knot + 1]! <= rho) knot++;
    }
    pieceStart[engine + 1] = count;
  }
  return { capacity, pieceStart, pieceFrom, pieceTo, pieceLow, pieceHigh, exactFrom, exactTo, pieceValue };
}

type Columns3 = [Float64Array, Float64Array, Float64Array];
type Columns4 = [Float64Array, Float64Array, Float64Array, Float64Array];

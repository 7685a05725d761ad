import {
  type Bound,
  type Certificate,
  type ClusterSnapshot,
  type CurveSet,
  decodeRing,
  encodeRing,
  type Publication,
  type Reserve,
  type SnapshotCell,
  STREAM_LIMIT_FACTOR,
  type StoredPublication,
} from "@guidevane/core";
import type { CurveEvaluator } from "@guidevane/native";
import { countSlots, editRing } from "@guidevane/selector";
import { lowerBound, withoutChurn } from "./bound.ts";
import { addedMs, type CellFacts, type ProblemIndex } from "./build-problem.ts";
import { type CellWeights, cellWeights } from "./cell-weights.ts";
import { publishedCell, publishedWeights } from "./churn.ts";
import { publishedPin } from "./pin-problem.ts";
import { cellKey, type PlanInputs } from "./plan-types.ts";
import type { Problem, Solution } from "./problem.ts";
import { ringCost } from "./ring-cost.ts";
import { shedPrice } from "./shed.ts";
import { snapshotClasses, snapshotEngines } from "./snapshot-fleet.ts";
import { storeProblem } from "./stored-problem.ts";

/** Everything that a solved problem says, as snapshots of every cluster. */
export function publish(
  inputs: PlanInputs,
  problem: Problem,
  index: ProblemIndex,
  solution: Solution,
  previous: StoredPublication | null,
  curves: CurveEvaluator,
): Publication {
  const { slots } = inputs.fleet.policy;
  const weights = cellWeights(problem, index, solution, slots, (cell) =>
    publishedWeights(previous, index.cells[cell]!),
  );
  const rings = weights.map(({ arcs, weights: asked }, cell) => {
    const ids = arcs.map((arc) => engineId(problem, index, arc));
    return editRing(ringBefore(previous, index.cells[cell]!), ids, asked, slots);
  });
  const shares = rings.map(({ owners, engines }) =>
    Array.from(countSlots(owners, engines.length), (count) => count / slots),
  );
  const does = weights.map(({ arcs, shed }, cell) => ({ arcs, shares: shares[cell]!, shed }));
  const cost = ringCost(problem, does);
  const bound = lowerBound(problem, solution.priceMs);
  const facts: Facts = { problem, index, solution, loadWps: cost.loadWps, demandPriceMs: bound.demandPriceMs };
  const marginalMs = marginals(problem.curves, solution.loadWps, curves);
  const figures = { loadWps: cost.loadWps, priceMs: solution.priceMs, worthMs: worths(facts, curves) };

  const free = withoutChurn(problem);
  const certificate: Certificate = {
    ...boundPerRequest(index, cost.objectiveMs, bound.lowerBoundMs),
    churnFree: boundPerRequest(
      index,
      ringCost(free, does).objectiveMs,
      lowerBound(free, solution.priceMs).lowerBoundMs,
    ),
    expectedLatencyMs: expectedLatency(facts, weights, shares),
  };
  const pins = new Map((inputs.pins ?? []).map((pin) => [cellKey(pin.cluster, pin.class), pin]));
  const clusters = new Map<string, ClusterSnapshot>();
  for (const cluster of inputs.fleet.clusters.values()) {
    const own = index.cells.flatMap((each, cell) => (each.cluster.name === cluster.name ? [cell] : []));
    clusters.set(cluster.name, {
      version: 0,
      epoch: 0,
      madeAt: new Date(inputs.wallMs).toISOString(),
      cluster: cluster.name,
      gateways: inputs.gateways.get(cluster.name) ?? 0,
      engines: snapshotEngines(problem, index, own, figures),
      classes: snapshotClasses(inputs.fleet),
      aliases: Object.fromEntries(inputs.fleet.aliases),
      cells: own.map((cell) => {
        const { owners, engines } = rings[cell]!;
        const pin = pins.get(cellKey(cluster.name, index.cells[cell]!.spec.name));
        return {
          ...snapshotCell(facts, cell, weights[cell]!, encodeRing(owners, engines.length), marginalMs),
          ...(pin === undefined ? {} : { pin: publishedPin(pin) }),
        };
      }),
      certificate,
    });
  }
  return { clusters, problem: storeProblem(problem, index, solution.priceMs) };
}

interface Facts {
  readonly problem: Problem;
  readonly index: ProblemIndex;
  readonly solution: Solution;
  /** y_e of the rings' shares. */
  readonly loadWps: Float64Array;
  /** π_k before the shed price caps it, ms per unit of work. */
  readonly demandPriceMs: Float64Array;
}

function ringBefore(
  previous: StoredPublication | null,
  cell: CellFacts,
): { engines: readonly string[]; owners: Uint16Array } {
  const found = publishedCell(previous, cell);
  return found === undefined
    ? { engines: [], owners: new Uint16Array(0) }
    : { engines: found.engines, owners: decodeRing(found) };
}

function engineId(problem: Problem, index: ProblemIndex, arc: number): string {
  return index.engines[problem.arcEngine[arc]!]!.spec.id;
}

/** Right-hand marginals of φ without the ramp, ms per unit of work. */
function marginals(curves: CurveSet, loadWps: Float64Array, { evaluate }: CurveEvaluator): Float64Array {
  const out = columns(loadWps.length);
  evaluate({ ...curves, headroom: 0, headroomMs: 0 }, loadWps, out);
  return out.slope;
}

/** ρ·w − φ/U: what one more unit of capacity is worth, ms of the fleet's latency per second. */
function worths({ problem, solution }: Facts, { evaluate }: CurveEvaluator): Float64Array {
  const { capacityWps } = problem.curves;
  const out = columns(capacityWps.length);
  evaluate(problem.curves, solution.loadWps, out);
  return capacityWps.map((capacity, engine) =>
    capacity > 0 ? (solution.loadWps[engine]! * solution.priceMs[engine]! - out.value[engine]!) / capacity : 0,
  );
}

function columns(length: number) {
  return { value: new Float64Array(length), slope: new Float64Array(length), curvature: new Float64Array(length) };
}

function utilisation({ problem, loadWps }: Facts, engine: number): number {
  const capacity = problem.curves.capacityWps[engine]!;
  return capacity > 0 ? loadWps[engine]! / capacity : 0;
}

/** Time of a request of this cell on this arc at this utilisation, network included. */
function expectedMs({ problem, index }: Facts, cell: number, arc: number, rho: number): number {
  const { profile } = index.engines[problem.arcEngine[arc]!]!;
  return index.arcRttMs[arc]! + index.arcServiceMs[arc]! + addedMs(profile, index.cells[cell]!.spec, rho);
}

function snapshotCell(
  facts: Facts,
  cell: number,
  { arcs, weights, shed }: CellWeights,
  ring: string,
  marginalMs: Float64Array,
): SnapshotCell {
  const { problem, index, solution, demandPriceMs } = facts;
  const { cluster, spec, demandRps } = index.cells[cell]!;
  const priceMs = spec.work * Math.min(demandPriceMs[cell]!, shedPrice(problem, cell, shed));
  return {
    cluster: cluster.name,
    class: spec.name,
    demandRps,
    work: spec.work,
    engines: arcs.map((arc) => engineId(problem, index, arc)),
    weights: [...weights],
    expectedMs: arcs.map((arc) => expectedMs(facts, cell, arc, utilisation(facts, problem.arcEngine[arc]!))),
    addends: arcs.map((arc) => {
      const engine = problem.arcEngine[arc]!;
      const price = solution.priceMs[engine]!;
      // A price that leaves its marginal by rounding alone is no capacity price.
      const congestion = price <= marginalMs[engine]! * (1 + ROUNDING) ? price : marginalMs[engine]!;
      return [
        index.arcRttMs[arc]!,
        index.arcServiceMs[arc]!,
        spec.work * congestion,
        spec.work * (price - congestion),
        spec.work * moveShare(problem, arc, price, priceMs / spec.work),
      ];
    }),
    reserves: reserves(facts, cell, new Set(arcs), priceMs),
    shed,
    priceMs,
    streamLimit: streamLimit(facts, cell, arcs, weights, shed),
    ring,
  };
}

const ROUNDING = 1e-12;

/** σ_ke of an arc in use: what of the demand price π is neither cost nor engine price, 0 … m. */
function moveShare({ arcCostMs, churn }: Problem, arc: number, engineMs: number, demandMs: number): number {
  return Math.min(Math.max(0, demandMs - arcCostMs[arc]! - engineMs), churn?.moveMs[arc] ?? 0);
}

/** A cell lists so many engines of weight zero. */
const RESERVES = 8;

/** Eligible engines of weight zero with spare capacity, by rising reduced cost. */
function reserves(facts: Facts, cell: number, used: ReadonlySet<number>, priceMs: number): Reserve[] {
  const { problem, index, solution, loadWps } = facts;
  const { work } = index.cells[cell]!.spec;
  // Kept sorted while all arcs are looked at: sorting hundreds of engines for eight costs more than the solve.
  const best: Reserve[] = [];
  for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
    const engine = problem.arcEngine[arc]!;
    const spareWps = problem.curves.capacityWps[engine]! - loadWps[engine]!;
    if (!(spareWps > 0) || used.has(arc)) continue;
    const sumMs = work * (problem.arcCostMs[arc]! + solution.priceMs[engine]! + idleMoveMs(problem, arc));
    const reducedCostMs = sumMs - priceMs;
    if (best.length === RESERVES && reducedCostMs > best.at(-1)!.reducedCostMs) continue;
    best.push({ engine: engineId(problem, index, arc), spareWps, reducedCostMs });
    best.sort((a, b) => a.reducedCostMs - b.reducedCostMs || (a.engine < b.engine ? -1 : 1));
    if (best.length > RESERVES) best.pop();
  }
  return best;
}

/** σ_ke of an arc that is not in use: the first unit pays for the move, unless the arc was in use. */
function idleMoveMs({ churn }: Problem, arc: number): number {
  return churn === undefined || churn.referenceWps[arc]! > 0 ? 0 : churn.moveMs[arc]!;
}

const LIMIT_UTILISATION = 0.95;
/** A class that was silent may begin with so many streams: by its floor of demand it would be let none. */
const LEAST_STREAMS = 4;

/**
 * Streams that the cluster may hold for this class before gateways shed on their own: 1.25 × the requests/s that its part
 * of each engine would be at full load, U·x_ke/y_e, × a request's time there at 0.95.
 */
function streamLimit(
  facts: Facts,
  cell: number,
  arcs: readonly number[],
  weights: readonly number[],
  shed: number,
): number {
  const { problem, index, loadWps } = facts;
  const served = index.cells[cell]!.demandRps * (1 - shed);
  let streams = 0;
  for (const [at, arc] of arcs.entries()) {
    const rho = utilisation(facts, problem.arcEngine[arc]!);
    if (rho === 0 || loadWps[problem.arcEngine[arc]!]! === 0) continue;
    const fullRps = (served * weights[at]!) / rho;
    streams += (fullRps * expectedMs(facts, cell, arc, LIMIT_UTILISATION)) / 1000;
  }
  return Math.max(LEAST_STREAMS, STREAM_LIMIT_FACTOR * streams);
}

/** Cost of the rings' shares against the bound, both in ms per second, as ms per request. */
export function boundPerRequest({ cells }: ProblemIndex, objectiveMs: number, lowerBoundMs: number): Bound {
  const requests = cells.reduce((sum, { demandRps }) => sum + demandRps, 0);
  const per = requests > 0 ? 1 / requests : 0;
  const gapMs = (objectiveMs - lowerBoundMs) * per;
  return {
    objectiveMs: objectiveMs * per,
    lowerBoundMs: lowerBoundMs * per,
    gapMs,
    gap: objectiveMs > 0 ? gapMs / (objectiveMs * per) : 0,
  };
}

/** Estimate of the mean latency of what is served. */
function expectedLatency(
  facts: Facts,
  weights: readonly CellWeights[],
  shares: readonly (readonly number[])[],
): number {
  const { problem, index } = facts;
  let served = 0;
  let latency = 0;
  for (const [cell, { demandRps }] of index.cells.entries()) {
    const { arcs, shed } = weights[cell]!;
    for (const [at, arc] of arcs.entries()) {
      const rps = demandRps * (1 - shed) * shares[cell]![at]!;
      served += rps;
      latency += rps * expectedMs(facts, cell, arc, utilisation(facts, problem.arcEngine[arc]!));
    }
  }
  return served > 0 ? latency / served : 0;
}

import { type ClusterSnapshot, type SnapshotCell, valueAt } from "@guidevane/core";
import { kinksOf, marginalAt } from "./engine-cost.ts";
import type { Facts } from "./explain-facts.ts";
import type { Binding } from "./explain-words.ts";
import type { Problem } from "./problem.ts";
import type { StoredProblem } from "./stored-problem.ts";

export interface Range {
  readonly oneFewer: number;
  /** null = one more can't be had. */
  readonly oneMore: number | null;
}

export interface EngineExplanation {
  readonly engine: string;
  readonly weight: number;
  readonly isUsed: boolean;
  readonly addends: Addends;
  /** Sum of the addends. */
  readonly sumMs: number;
  /** r: the sum less the demand price; 0 where the engine is used, but for rounding and for pins. */
  readonly reducedCostMs: number;
  /** w_e, ms per unit of work: what one more unit of work here costs the fleet. */
  readonly priceMs: number;
  readonly priceRangeMs: Range | null;
  readonly loadWps: number;
  readonly capacityWps: number;
  /** What one more unit of capacity here is worth, ms of the fleet's latency per second. */
  readonly worthMs: number;
  /** What keeps the weight from being larger: see `BINDING`. */
  readonly binds: Binding;
  /** Another engine at which such a request would itself be faster; it is not sent there for what it would inflict. */
  readonly faster: { readonly engine: string; readonly byMs: number; readonly inflictedMs: number } | null;
}

export interface Addends {
  readonly networkMs: number;
  readonly serviceMs: number;
  /** The two parts of congestion: a·Q and a·(s − Q). */
  readonly ownWaitMs: number;
  readonly inflictedMs: number;
  readonly capacityPriceMs: number;
  readonly stabilityMs: number;
}

/** One engine that may serve the cell shown, over this arc; what is faster takes all of them to say. */
export function explainEngine(
  facts: Facts,
  snapshot: ClusterSnapshot,
  shown: SnapshotCell,
  arc: number,
): EngineExplanation {
  const { problem, stored, priceMs, flows, ranges } = facts;
  const engine = problem.arcEngine[arc]!;
  const id = stored.engines[engine]!;
  const { work } = shown;
  const place = shown.engines.indexOf(id);
  const isUsed = place >= 0 && shown.weights[place]! > 0;
  const { rttMs, worthMs, loadWps, capacityWps } = snapshot.engines[id]!;
  const price = priceMs[engine]!;
  const congestion = isUsed ? shown.addends[place]![2] / work : Math.min(price, congestionAt(facts, engine));
  const wait = Math.min(congestion, waitAt(stored, engine, flows.loadWps[engine]!));
  const moved = problem.churn === undefined || problem.churn.referenceWps[arc]! > 0 ? 0 : problem.churn.moveMs[arc]!;
  const addends: Addends = {
    networkMs: rttMs,
    serviceMs: work * problem.arcCostMs[arc]! - rttMs,
    ownWaitMs: work * wait,
    inflictedMs: work * (congestion - wait),
    capacityPriceMs: work * (price - congestion),
    stabilityMs: isUsed ? shown.addends[place]![4] : work * moved,
  };
  const sumMs = Object.values(addends).reduce((sum, each) => sum + each, 0);
  return {
    engine: id,
    weight: isUsed ? shown.weights[place]! : 0,
    isUsed,
    addends,
    sumMs,
    reducedCostMs: sumMs - shown.priceMs,
    priceMs: price,
    priceRangeMs: capacityWps > 0 ? rangeOf(ranges.engineLowMs[engine]!, ranges.engineHighMs[engine]!) : null,
    loadWps,
    capacityWps,
    worthMs,
    binds:
      shown.pin !== undefined
        ? "pin"
        : bindingOf(
            problem,
            engine,
            flows.loadWps[engine]!,
            isUsed,
            addends.stabilityMs,
            work * (problem.churn?.moveMs[arc] ?? 0),
          ),
    faster: null,
  };
}

/** Marginal from the right without the ramp, ms per unit of work. */
function congestionAt({ problem, flows }: Facts, engine: number): number {
  return marginalAt({ ...problem.curves, headroom: 0, headroomMs: 0 }, engine, flows.loadWps[engine]!);
}

/** Q at the engine's load, ms per unit of work. */
function waitAt(stored: StoredProblem, engine: number, loadWps: number): number {
  const [start, end] = [stored.knotStart[engine]!, stored.knotStart[engine + 1]!];
  const capacity = stored.capacityWps[engine]!;
  const knots = stored.knotRho.slice(start, end).map((rho, at) => [rho, stored.knotMs[start + at]!] as const);
  return capacity > 0 ? valueAt(knots, loadWps / capacity) : 0;
}

/** null where the price is unique. */
export function rangeOf(low: number, high: number): Range | null {
  if (!(high - low > 1e-6 * Math.max(1, Math.abs(low)))) return null;
  return { oneFewer: low, oneMore: Number.isFinite(high) ? high : null };
}

const NEAR = 1e-4;

function bindingOf(
  { curves }: Problem,
  engine: number,
  loadWps: number,
  isUsed: boolean,
  stabilityMs: number,
  moveMs: number,
): Binding {
  const capacityWps = curves.capacityWps[engine]!;
  if (capacityWps === 0) return "out";
  if (!isUsed) return stabilityMs > 0 ? "move" : "cost";
  const rho = loadWps / capacityWps;
  if (rho >= 1 - NEAR) return "capacity";
  if (stabilityMs > 0 && stabilityMs < moveMs * (1 - NEAR)) return "move";
  if (curves.headroom > 0 && curves.headroomMs > 0 && rho > 1 - curves.headroom + NEAR) return "headroom";
  const isOnKnot = kinksOf(curves, engine).some((wps) => wps > 0 && Math.abs(wps - loadWps) < NEAR * capacityWps);
  return isOnKnot ? "knot" : "none";
}

/** The engine at which a request would be soonest done, if by more than a tenth of a millisecond. */
export function fasterThan(one: EngineExplanation, all: readonly EngineExplanation[]): EngineExplanation["faster"] {
  if (!one.isUsed) return null;
  const own = ({ addends }: EngineExplanation): number => addends.networkMs + addends.serviceMs + addends.ownWaitMs;
  let best: EngineExplanation | null = null;
  for (const other of all) if (other.capacityWps > 0 && (best === null || own(other) < own(best))) best = other;
  if (best === null || own(one) - own(best) < 0.1) return null;
  return { engine: best.engine, byMs: own(one) - own(best), inflictedMs: best.addends.inflictedMs };
}

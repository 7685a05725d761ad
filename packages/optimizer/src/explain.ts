import {
  type ClusterSnapshot,
  decodeRing,
  GuidevaneError,
  type Publication,
  type SnapshotCell,
  valueAt,
} from "@guidevane/core";
import type { Flows } from "./bound.ts";
import { kinksOf, marginalAt } from "./engine-cost.ts";
import { type Binding, cellSentence, engineSentence, ms } from "./explain-words.ts";
import { type PriceRanges, priceRanges } from "./price-ranges.ts";
import type { Problem } from "./problem.ts";
import { shedPrice } from "./shed.ts";
import { loadProblem, type StoredProblem } from "./stored-problem.ts";

/**
 * Why a weight is what it is. Per request of a cell and per engine that may serve it,
 *
 *     network + service + own wait + inflicted + capacity price + stability = demand price + r
 *
 * r = 0 where the engine is used; where it isn't, r is by how much it would have to be cheaper. Everything is read from
 * the publication: its prices, its loads, and the problem stored with it. Milliseconds a request, if not said otherwise.
 */
export interface Explanation {
  readonly cluster: string;
  readonly class: string;
  readonly version: number;
  readonly demandRps: number;
  /** Fraction of demand. */
  readonly shed: number;
  /** What one more request costs the fleet. */
  readonly demandPriceMs: number;
  /** Where the price is not unique: what one request fewer saves and what one more costs; null where they are one. */
  readonly demandPriceRangeMs: Range | null;
  /** Every engine that may serve the cell: those in use by falling weight, then the others by rising `reducedCostMs`. */
  readonly engines: readonly EngineExplanation[];
  /** Why some of the demand is shed; null where none is. */
  readonly whyShed: string | null;
  /** Weights by an operator's word, while they last. */
  readonly pinnedUntil: string | null;
  readonly sentence: string;
}

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

/**
 * @param engine only this one, if given
 * @throws GuidevaneError `bad_usage` for a cluster, class or engine that the publication does not have there
 */
export function explain(
  publication: Publication & { readonly version?: number },
  cluster: string,
  requestClass: string,
  engine?: string,
): Explanation {
  const whole = explainAll(publication, cluster, requestClass);
  if (engine === undefined) return whole;
  const engines = whole.engines.filter((each) => each.engine === engine);
  if (engines.length === 0)
    throw new GuidevaneError(
      "bad_usage",
      `${engine} may not serve ${requestClass} from ${cluster}, or is not an engine`,
    );
  return { ...whole, engines, sentence: engineSentence(whole, engines[0]!) };
}

function explainAll(
  publication: Publication & { readonly version?: number },
  cluster: string,
  requestClass: string,
): Explanation {
  const snapshot = publication.clusters.get(cluster);
  if (snapshot === undefined)
    throw new GuidevaneError(
      "bad_usage",
      `${cluster} is not a cluster; known: ${[...publication.clusters.keys()].join(", ")}`,
    );
  const shown = snapshot.cells.find((each) => each.class === requestClass);
  if (shown === undefined)
    throw new GuidevaneError(
      "bad_usage",
      `${requestClass} is not a class of ${cluster}; known: ${snapshot.cells.map((each) => each.class).join(", ")}`,
    );
  const facts = readFacts(publication);
  const cell = facts.stored.cells.findIndex((each) => each.cluster === cluster && each.class === requestClass);
  const { low, high } = { low: facts.ranges.cellLowMs[cell]!, high: facts.ranges.cellHighMs[cell]! };
  const engines = arcsOf(facts.problem, cell).map((arc) => explainArc(facts, snapshot, shown, arc));
  for (const [at, each] of engines.entries()) engines[at] = { ...each, faster: fasterThan(each, engines) };
  engines.sort(
    (a, b) =>
      b.weight - a.weight || (a.isUsed ? 0 : a.reducedCostMs - b.reducedCostMs) || (a.engine < b.engine ? -1 : 1),
  );
  const bare: Omit<Explanation, "sentence"> = {
    cluster,
    class: requestClass,
    version: publication.version ?? snapshot.version,
    demandRps: shown.demandRps,
    shed: shown.shed,
    demandPriceMs: shown.priceMs,
    demandPriceRangeMs: rangeOf(low * shown.work, high * shown.work),
    engines,
    whyShed: whyShed(facts, shown, cell, engines),
    pinnedUntil: shown.pin?.until ?? null,
  };
  return { ...bare, sentence: cellSentence(bare) };
}

interface Facts {
  readonly problem: Problem;
  readonly stored: StoredProblem;
  readonly priceMs: Float64Array;
  readonly flows: Flows;
  readonly ranges: PriceRanges;
}

/** What a weight of less than half a slot may have been dropped for, as a part of a load. */
const ROUNDING = 1e-6;

function readFacts(publication: Publication): Facts {
  const { problem, stored, priceMs } = loadProblem(publication.problem);
  const engineAt = new Map(stored.engines.map((id, engine) => [id, engine]));
  const flowWps = new Float64Array(problem.arcEngine.length);
  const shedWps = new Float64Array(stored.cells.length);
  const loadWps = new Float64Array(priceMs.length);
  const slackWps = new Float64Array(priceMs.length);
  for (const [cell, { cluster, class: requestClass }] of stored.cells.entries()) {
    const shown = publication.clusters.get(cluster)?.cells.find((each) => each.class === requestClass);
    if (shown === undefined) continue;
    const demand = problem.demandWps[cell]!;
    shedWps[cell] = demand * shown.shed;
    const weights = new Map(shown.engines.map((id, at) => [engineAt.get(id)!, shown.weights[at]!]));
    const slots = Math.max(1, decodeRing(shown).length);
    for (const arc of arcsOf(problem, cell)) {
      const engine = problem.arcEngine[arc]!;
      flowWps[arc] = demand * (1 - shown.shed) * (weights.get(engine) ?? 0);
      loadWps[engine]! += flowWps[arc]!;
      if (flowWps[arc]! > 0) slackWps[engine]! += demand / slots;
    }
  }
  const flows = { flowWps, shedWps, loadWps };
  return {
    problem,
    stored,
    priceMs,
    flows,
    ranges: priceRanges(problem, flows, priceMs, { part: ROUNDING, slackWps }),
  };
}

function arcsOf({ arcStart }: Problem, cell: number): number[] {
  return Array.from({ length: arcStart[cell + 1]! - arcStart[cell]! }, (_, at) => arcStart[cell]! + at);
}

function explainArc(facts: Facts, snapshot: ClusterSnapshot, shown: SnapshotCell, arc: number): EngineExplanation {
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

function rangeOf(low: number, high: number): Range | null {
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
function fasterThan(one: EngineExplanation, all: readonly EngineExplanation[]): EngineExplanation["faster"] {
  if (!one.isUsed) return null;
  const own = ({ addends }: EngineExplanation): number => addends.networkMs + addends.serviceMs + addends.ownWaitMs;
  let best: EngineExplanation | null = null;
  for (const other of all) if (other.capacityWps > 0 && (best === null || own(other) < own(best))) best = other;
  if (best === null || own(one) - own(best) < 0.1) return null;
  return { engine: best.engine, byMs: own(one) - own(best), inflictedMs: best.addends.inflictedMs };
}

function whyShed(
  { problem, stored }: Facts,
  shown: SnapshotCell,
  cell: number,
  engines: readonly EngineExplanation[],
): string | null {
  if (shown.shed <= 0) return null;
  const able = engines.filter(({ capacityWps }) => capacityWps > 0);
  const percent = `${(100 * shown.shed).toFixed(2)} % of ${shown.class} is shed`;
  if (able.length === 0) return `${percent}: no engine that may serve it has any capacity`;
  const price = shown.work * shedPrice(problem, cell, shown.shed);
  const cheapest = able.reduce((least, each) => (each.sumMs < least.sumMs ? each : least));
  const lower = stored.cells.filter((_, other) => stored.shedMs[other]! < stored.shedMs[cell]!).length;
  const first = lower > 0 ? ", after what has a lower priority" : "";
  if (able.every(({ binds }) => binds === "capacity"))
    return `${percent}${first}: every engine that may serve it is full, and making room costs more than shedding at ${ms(price)}`;
  return `${percent}${first}: serving it at ${cheapest.engine} would cost the fleet ${ms(cheapest.sumMs)}, shedding costs ${ms(price)}`;
}

import { isDeepStrictEqual } from "node:util";
import { type Bound, decodeRing, type StoredPublication } from "@guidevane/core";
import { countSlots } from "@guidevane/selector";
import { lowerBound, withoutChurn } from "./bound.ts";
import type { CellFacts, ProblemIndex } from "./build-problem.ts";
import { publishedCell } from "./churn.ts";
import { isChance } from "./gate-chance.ts";
import { changedPin, publishedPin } from "./pin-problem.ts";
import { cellKey, type PlanInputs } from "./plan-types.ts";
import type { Problem } from "./problem.ts";
import { boundPerRequest } from "./publish.ts";
import { type CellShares, type RingCost, ringCost } from "./ring-cost.ts";
import { shiftPrices } from "./shift-prices.ts";
import { sameDefinitions } from "./snapshot-fleet.ts";
import type { StoredProblem } from "./stored-problem.ts";

/** What the present rings cost on the newest demand, and what the old prices prove no plan can do without. */
export interface Gate {
  /** True: nothing need move. */
  readonly held: boolean;
  /** Why the gate opened or held, for a person. */
  readonly why: string;
  /** The present rings' certificate, ms per request; null where they can't serve the new inputs at all. */
  readonly certificate: (Bound & { readonly churnFree: Bound }) | null;
}

/**
 * Certifies the present weights (the rings' shares) on new inputs by the last publication's prices, each connected part
 * of the fleet's shifted by the one number that makes the best bound. Where nothing changed in who may serve what, what
 * engines are, or what they can hold, it holds while a solve could gain no more than `policy.gateMs` per request, or no more
 * beyond that than chance in measuring demand makes of nothing (`isChance`).
 *
 * @param problem of the new inputs, with its churn term
 * @param pin puts the pins in force into a problem: what an operator fixed, no solve could gain
 */
export function tryGate(
  inputs: PlanInputs,
  problem: Problem,
  index: ProblemIndex,
  previous: StoredPublication | null,
  pin: (problem: Problem) => Problem = (each) => each,
): Gate {
  const { gateMs } = inputs.fleet.policy;
  const opened = (why: string): Gate => ({ held: false, why, certificate: null });
  if (previous === null) return opened("nothing was published before");
  if (index.cells.length === 0) return opened("there is nothing to route");
  const before = storedColumns(previous.problem);
  if (before === null) return opened("the publication has no problem");
  const changed = changeOf(inputs, problem, index, previous, before);
  if (changed !== null) return opened(changed);
  const does = presentShares(index, problem, previous, inputs.fleet.policy.slots);
  if (does === null) return opened("a cell has no ring of this many slots");
  const cost = ringCost(problem, does);
  const over = overloaded(problem, does, cost, inputs.fleet.policy.slots);
  if (over >= 0) return opened(`${index.engines[over]!.spec.id} has more work than it can hold`);

  const oldPriceMs = Float64Array.from(before.priceMs);
  const pinned = pin(problem);
  const priceMs = shiftPrices(pinned, oldPriceMs);
  const boundOf = (each: Problem): number => lowerBound(each, priceMs).lowerBoundMs;
  const freeCostMs = ringCost(withoutChurn(problem), does).objectiveMs;
  const certificate = {
    ...boundPerRequest(index, cost.objectiveMs, boundOf(pinned)),
    churnFree: boundPerRequest(index, freeCostMs, boundOf(withoutChurn(pinned))),
  };
  // Rings round to slots whoever solves: what that puts on full engines no solve would gain.
  const gainMs = certificate.gapMs - boundPerRequest(index, cost.overMs, 0).objectiveMs;
  // A pin's rings round to slots, its bound does not: that can come out below 0.
  const shown = gainMs < LEAST_SHOWN_MS ? `less than ${LEAST_SHOWN_MS}` : gainMs.toPrecision(3);
  const why = `${shown} ms a request may be gained`;
  if (gateMs === 0) return { held: false, why, certificate };
  if (gainMs < gateMs) return { held: true, why, certificate };
  const gainOf = (drawn: Problem): number => {
    const drawnPin = pin(drawn);
    const { objectiveMs, overMs } = ringCost(drawn, does);
    const { lowerBoundMs } = lowerBound(drawnPin, shiftPrices(drawnPin, oldPriceMs));
    return boundPerRequest(index, objectiveMs - overMs, lowerBoundMs).gapMs;
  };
  const { madeForWps, deviationWps } = measuredDemand(inputs, index, previous);
  if (!isChance(problem, madeForWps, deviationWps, gainOf, gainMs - gateMs)) return { held: false, why, certificate };
  return { held: true, why: `${why}, no more than chance in measuring demand makes of nothing`, certificate };
}

/** By cell, work units/s: what the published weights were made for, and one deviation by chance of what is measured now. */
function measuredDemand(
  { demandDeviationRps }: PlanInputs,
  { cells }: ProblemIndex,
  previous: StoredPublication,
): { madeForWps: Float64Array; deviationWps: Float64Array } {
  const deviationRps = ({ cluster, spec }: CellFacts) => demandDeviationRps?.get(cellKey(cluster.name, spec.name)) ?? 0;
  return {
    madeForWps: Float64Array.from(cells, (facts) => publishedCell(previous, facts)!.demandRps * facts.spec.work),
    deviationWps: Float64Array.from(cells, (facts) => deviationRps(facts) * facts.spec.work),
  };
}

/** What the gate reads of the last publication's problem. */
type StoredColumns = Pick<StoredProblem, "cells" | "engines" | "arcStart" | "arcEngine" | "capacityWps" | "priceMs">;

/** A glance, not a check of every number: it was verified when it was published, and what is read here is compared. */
function storedColumns(problem: unknown): StoredColumns | null {
  if (typeof problem !== "object" || problem === null) return null;
  const columns = problem as Partial<StoredColumns>;
  const { cells, engines, arcStart, arcEngine, capacityWps, priceMs } = columns;
  const areLists = [cells, engines, arcStart, arcEngine, capacityWps, priceMs].every(Array.isArray);
  return areLists && priceMs!.length === engines!.length ? (columns as StoredColumns) : null;
}

/** What changed besides demand, distances and how well engines are: none of that may wait for a gap. */
function changeOf(
  inputs: PlanInputs,
  { arcStart, arcEngine, curves }: Problem,
  { cells, engines }: ProblemIndex,
  previous: StoredPublication,
  before: StoredColumns,
): string | null {
  const pin = changedPin(inputs.pins ?? [], previous);
  if (pin !== null) return pin;
  const isSameFleet =
    before.cells.length === cells.length &&
    cells.every(({ cluster, spec }, at) => {
      const { cluster: name, class: requestClass } = before.cells[at]!;
      return name === cluster.name && requestClass === spec.name;
    }) &&
    before.engines.length === engines.length &&
    engines.every(({ spec }, at) => before.engines[at] === spec.id);
  if (!isSameFleet) return "cells or engines came or went";
  if (!isSame(before.arcStart, arcStart) || !isSame(before.arcEngine, arcEngine)) return "eligibility changed";
  for (const [engine, { spec }] of engines.entries())
    if (before.capacityWps[engine]! > 0 !== curves.capacityWps[engine]! > 0) return `${spec.id} was lost or came back`;
  for (const [cluster, snapshot] of previous.clusters) {
    if ((inputs.gateways.get(cluster) ?? 0) !== snapshot.gateways)
      return `the number of gateways of cluster ${cluster} changed`;
  }
  const pins = new Map((inputs.pins ?? []).map((pin) => [cellKey(pin.cluster, pin.class), publishedPin(pin)]));
  for (const facts of cells) {
    const name = cellKey(facts.cluster.name, facts.spec.name);
    if (!isDeepStrictEqual(publishedCell(previous, facts)?.pin, pins.get(name))) return "pins changed";
  }
  return sameDefinitions(inputs.fleet, engines, previous) ? null : "engines or classes are defined otherwise";
}

/** No operator needs to know more exactly what is not worth moving for. */
const LEAST_SHOWN_MS = 0.001;

function isSame(one: ArrayLike<number>, other: ArrayLike<number>): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** What the published rings do; null where a cell has none. */
function presentShares(
  { cells, engines }: ProblemIndex,
  problem: Problem,
  previous: StoredPublication,
  slots: number,
): CellShares[] | null {
  const engineAt = new Map(engines.map(({ spec }, engine) => [spec.id, engine]));
  const does: CellShares[] = [];
  for (const [cell, facts] of cells.entries()) {
    const found = publishedCell(previous, facts);
    if (found === undefined) return null;
    const owners = decodeRing(found);
    if (owners.length !== slots) return null;
    const counts = countSlots(owners, found.engines.length);
    const arcs = found.engines.map((id) => arcOf(problem, cell, engineAt.get(id) ?? -1));
    if (arcs.some((arc) => arc < 0)) return null;
    does.push({ arcs, shares: Array.from(counts, (count) => count / owners.length), shed: found.shed });
  }
  return does;
}

/** The cell's arc to an engine, −1 where there is none. Arcs of a cell rise in engine. */
function arcOf({ arcStart, arcEngine }: Problem, cell: number, engine: number): number {
  let low = arcStart[cell]!;
  let high = arcStart[cell + 1]! - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    if (arcEngine[middle] === engine) return middle;
    if (arcEngine[middle]! < engine) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** The first engine that the present rings put more on than it holds, beyond their rounding to slots; −1 = none. */
function overloaded(
  { curves, demandWps, arcEngine }: Problem,
  does: readonly CellShares[],
  { loadWps }: RingCost,
  slots: number,
): number {
  const slack = new Float64Array(loadWps.length);
  for (const [cell, { arcs }] of does.entries())
    for (const arc of arcs) slack[arcEngine[arc]!]! += demandWps[cell]! / slots;
  return loadWps.findIndex((load, engine) => load > curves.capacityWps[engine]! * (1 + 1e-9) + slack[engine]!);
}

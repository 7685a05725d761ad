import {
  type Bound,
  checkClusterSnapshot,
  decodeRing,
  GuidevaneError,
  type Publication,
  type SnapshotCell,
  showProblem,
} from "@guidevane/core";
import { loadProblem, type StoredProblem } from "./stored-problem.ts";
import { boundOf, costOf, type Route } from "./verify-costs.ts";

/**
 * What is wrong with a publication, a sentence each; none = gateways may route by it. Recomputes everything that it claims
 * from the stored problem, the rings and the prices, in code that the solvers and `plan` do not use: weights and rings,
 * conservation, capacity, the cost of the rings' shares, the lower bound, and the prices' explanation.
 */
export function verifyCertificate(publication: Publication): string[] {
  let stored: StoredProblem;
  try {
    stored = loadProblem(publication.problem).stored;
  } catch (error) {
    if (!GuidevaneError.is(error)) throw error;
    return [`problem: ${error.message}`];
  }
  const wrong: string[] = [];
  for (const [name, snapshot] of publication.clusters) {
    if (snapshot.cluster !== name) wrong.push(`cluster ${name}: its snapshot says ${snapshot.cluster}`);
    for (const found of checkClusterSnapshot(snapshot)) wrong.push(`cluster ${name}: ${showProblem(found)}`);
  }
  if (wrong.length > 0) return wrong;

  const routes = readRoutes(publication, stored, wrong);
  const loads = addLoads(stored, routes);
  checkLoads(stored, routes, loads, wrong);
  checkEngines(publication, stored, loads, wrong);
  checkCertificates(publication, stored, routes, loads, wrong);
  return wrong;
}

/** Figures are doubles that went through other orders of summation. */
const CLOSE = 1e-7;

function close(a: number, b: number, scale = 0): boolean {
  return Math.abs(a - b) <= CLOSE * Math.max(1e-3, Math.abs(a), Math.abs(b), scale);
}

function readRoutes(publication: Publication, stored: StoredProblem, wrong: string[]): Route[] {
  const known = new Set(stored.cells.map((cell) => `${cell.cluster}\n${cell.class}`));
  for (const snapshot of publication.clusters.values()) {
    const seen = new Set<string>();
    for (const { class: name } of snapshot.cells) {
      if (seen.has(name)) wrong.push(`${snapshot.cluster} ${name}: two cells`);
      if (!known.has(`${snapshot.cluster}\n${name}`)) wrong.push(`${snapshot.cluster} ${name}: not in the problem`);
      seen.add(name);
    }
  }
  return stored.cells.map(({ cluster, class: requestClass, demandRps, work }, cell) => {
    const at = `${cluster} ${requestClass}`;
    const idle: Route = { slots: 1, shed: 1, flowWps: new Map() };
    const found = publication.clusters.get(cluster)?.cells.find((each) => each.class === requestClass);
    if (found === undefined) {
      wrong.push(`${at}: the problem has this cell, the snapshot lacks it`);
      return idle;
    }
    if (found.demandRps !== demandRps || found.work !== work || !close(stored.demandWps[cell]!, demandRps * work))
      wrong.push(`${at}: demand of ${found.demandRps} × ${found.work} is not the problem's`);
    return readRoute(stored, cell, found, at, wrong);
  });
}

function readRoute(stored: StoredProblem, cell: number, found: SnapshotCell, at: string, wrong: string[]): Route {
  const eligible = new Map<string, number>();
  for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++)
    eligible.set(stored.engines[stored.arcEngine[arc]!]!, arc);
  const owners = decodeRing(found);
  const slots = owners.length;
  if (slots === 0) wrong.push(`${at}: no ring`);
  const counts = found.engines.map(() => 0);
  for (const owner of owners) counts[owner]! += 1;
  const flowWps = new Map<number, number>();
  for (const [index, id] of found.engines.entries()) {
    const arc = eligible.get(id);
    if (arc === undefined) {
      wrong.push(`${at}: ${id} is not eligible`);
      continue;
    }
    const [asked, given] = [found.weights[index]! * slots, counts[index]!];
    if (Math.abs(asked - given) >= 1 + CLOSE || (asked === 0 && given > 0))
      wrong.push(`${at}: ${id} has ${given} slots of ${slots}, its weight asks for ${asked}`);
    flowWps.set(stored.arcEngine[arc]!, (stored.demandWps[cell]! * (1 - found.shed) * given) / slots);
    const addends = found.addends[index]!;
    const stability = addends[4];
    const total = addends.reduce((sum, addend) => sum + addend, 0);
    const price = found.work * (stored.arcCostMs[arc]! + stored.priceMs[stored.arcEngine[arc]!]!) + stability;
    if (!close(total, price)) wrong.push(`${at}: the addends of ${id} sum to ${total} ms, not ${price}`);
    const move = found.work * (stored.churn?.moveMs[cell] ?? 0);
    if (stability < 0 || (stability > move && !close(stability, move)))
      wrong.push(`${at}: stability of ${id} is ${stability} ms, a move costs ${move}`);
    if (stability > 0 && total > found.priceMs && !close(total, found.priceMs))
      wrong.push(`${at}: stability lifts ${id} to ${total} ms, above the price of ${found.priceMs}`);
  }
  for (const { engine } of found.reserves) {
    if (!eligible.has(engine)) wrong.push(`${at}: reserve ${engine} is not eligible`);
    if (found.engines.includes(engine)) wrong.push(`${at}: reserve ${engine} has a weight`);
  }
  return { slots: Math.max(1, slots), shed: found.shed, flowWps };
}

function addLoads(stored: StoredProblem, routes: readonly Route[]): number[] {
  const loads = stored.engines.map(() => 0);
  for (const { flowWps } of routes) for (const [engine, flow] of flowWps) loads[engine]! += flow;
  return loads;
}

/** No engine beyond its capacity by more than a slot of each cell that it serves; all demand routed or shed. */
function checkLoads(stored: StoredProblem, routes: readonly Route[], loads: readonly number[], wrong: string[]): void {
  const slack = stored.engines.map(() => 0);
  for (const [cell, { flowWps, shed, slots }] of routes.entries()) {
    const demand = stored.demandWps[cell]!;
    let sum = demand * shed;
    for (const [engine, flow] of flowWps) {
      sum += flow;
      if (flow > 0) slack[engine]! += demand / slots;
    }
    const { cluster, class: requestClass } = stored.cells[cell]!;
    if (!close(sum, demand)) wrong.push(`${cluster} ${requestClass}: ${sum} of ${demand} units/s routed or shed`);
  }
  for (const [engine, load] of loads.entries()) {
    const capacity = stored.capacityWps[engine]!;
    if (load > capacity * (1 + CLOSE) + slack[engine]!)
      wrong.push(`${stored.engines[engine]}: ${load} units/s planned on ${capacity}`);
  }
}

function checkEngines(
  publication: Publication,
  stored: StoredProblem,
  loads: readonly number[],
  wrong: string[],
): void {
  const numberOf = new Map(stored.engines.map((id, engine) => [id, engine]));
  for (const { cluster, engines } of publication.clusters.values()) {
    for (const [id, shown] of Object.entries(engines)) {
      const engine = numberOf.get(id);
      if (engine === undefined) {
        wrong.push(`${cluster}: ${id} is not in the problem`);
        continue;
      }
      const claims: readonly (readonly [string, number, number])[] = [
        ["loadWps", shown.loadWps, loads[engine]!],
        ["capacityWps", shown.capacityWps, stored.capacityWps[engine]!],
        ["priceMs", shown.priceMs, stored.priceMs[engine]!],
      ];
      for (const [name, is, must] of claims)
        if (!close(is, must)) wrong.push(`${cluster}: ${name} of ${id} is ${is}, must be ${must}`);
    }
  }
}

function checkCertificates(
  publication: Publication,
  stored: StoredProblem,
  routes: readonly Route[],
  loads: readonly number[],
  wrong: string[],
): void {
  const requests = stored.cells.reduce((sum, cell) => sum + cell.demandRps, 0);
  const per = requests > 0 ? 1 / requests : 0;
  const { churn: _, ...churnFree } = stored;
  const proven = [stored, churnFree].map((each) => ({
    objectiveMs: costOf(each, routes, loads) * per,
    lowerBoundMs: boundOf(each) * per,
  }));
  for (const { objectiveMs, lowerBoundMs } of proven) {
    if (lowerBoundMs > objectiveMs && !close(lowerBoundMs, objectiveMs))
      wrong.push(`the bound of ${lowerBoundMs} ms is above the cost of ${objectiveMs} ms: the problem is not convex`);
  }
  for (const { cluster, certificate } of publication.clusters.values()) {
    const claims: [string, number, number, number][] = [];
    for (const [at, { objectiveMs, lowerBoundMs }] of proven.entries()) {
      const name = at === 0 ? "certificate" : "churnFree";
      const bound: Bound = at === 0 ? certificate : certificate.churnFree;
      claims.push([`${name}.objectiveMs`, bound.objectiveMs, objectiveMs, objectiveMs]);
      claims.push([`${name}.lowerBoundMs`, bound.lowerBoundMs, lowerBoundMs, objectiveMs]);
      claims.push([`${name}.gapMs`, bound.gapMs, objectiveMs - lowerBoundMs, objectiveMs]);
      claims.push([`${name}.gap`, bound.gap * objectiveMs, objectiveMs - lowerBoundMs, objectiveMs]);
    }
    for (const [name, is, must, scale] of claims)
      if (!close(is, must, scale)) wrong.push(`${cluster}: ${name} is ${is}, must be ${must}`);
  }
}

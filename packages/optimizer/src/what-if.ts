import { type EngineSpec, GuidevaneError, knownNames, type Publication, type StoredPublication } from "@guidevane/core";
import { keysMoved } from "./keys-moved.ts";
import { type PlanOptions, plan } from "./plan.ts";
import { cellKey, type LiveEngine, type PlanBudget, type PlanInputs, type PlanStatus } from "./plan-types.ts";

/** One thing that might happen. Factors are of what there is now: 1.3 = 30 % more. */
export type Change =
  | { readonly kind: "drain"; readonly engine: string }
  /** Every engine of the region is lost; its clusters' demand goes on arriving. */
  | { readonly kind: "lose-region"; readonly region: string }
  /** Of one cluster or one class where named, else of all. */
  | { readonly kind: "demand"; readonly factor: number; readonly cluster?: string; readonly class?: string }
  | { readonly kind: "capacity"; readonly factor: number; readonly engine?: string }
  | { readonly kind: "new-engine"; readonly engine: EngineSpec };

export interface WhatIf {
  /** Of the changed plan; `message` says what is wrong with it, or what it leaves unserved. */
  readonly status: PlanStatus;
  readonly message: string;
  /** Null where there is no such plan. */
  readonly before: FleetFigures | null;
  readonly after: FleetFigures | null;
  readonly engines: readonly EngineMove[];
  /** Weights that differ, the most requests first. */
  readonly weights: readonly WeightMove[];
  /** Fraction of all requests whose key changes its home. */
  readonly keysMoved: number;
}

export interface FleetFigures {
  readonly demandRps: number;
  readonly shedRps: number;
  /** Cost of the rings' shares without the price of moves, and what no plan can do without; ms a request. */
  readonly objectiveMs: number;
  readonly lowerBoundMs: number;
  /** Mean latency of what is served: an estimate. */
  readonly expectedLatencyMs: number;
}

export interface EngineMove {
  readonly engine: string;
  readonly loadWps: Move;
  readonly capacityWps: Move;
  readonly worthMs: Move;
}

export interface Move {
  readonly before: number;
  readonly after: number;
}

export interface WeightMove {
  readonly cluster: string;
  readonly class: string;
  readonly engine: string;
  readonly weight: Move;
  readonly rps: Move;
}

/**
 * Plans the inputs as they are and with the changes, from the same publication, and compares. Publishes nothing. The
 * changed plan starts from the unchanged one, with its price of moves: what it shows is what the next tick would do.
 *
 * @throws GuidevaneError `bad_usage` for a change that names what the fleet does not have, or a factor that is none
 */
export function whatIf(
  inputs: PlanInputs,
  changes: readonly Change[],
  previous: StoredPublication | null = null,
  budget: PlanBudget = { deadlineMs: null },
  options: PlanOptions = {},
): WhatIf {
  const present = alwaysSolve(inputs);
  const base = plan(present, previous, null, budget, options);
  const changed = changes.reduce(applyChange, present);
  const from = base.publication === null ? previous : { ...base.publication, version: 0, epoch: 0 };
  const next = plan(changed, from, base.warm, budget, options);
  const [before, after] = [base.publication, next.publication];
  return {
    status: next.status,
    message: next.message,
    before: before === null ? null : figuresOf(before),
    after: after === null ? null : figuresOf(after),
    ...(before === null || after === null
      ? { engines: [], weights: [], keysMoved: 0 }
      : {
          engines: engineMoves(before, after),
          weights: weightMoves(before, after),
          keysMoved: keysMoved(before, after) ?? 0,
        }),
  };
}

/** The inputs after a change. @throws GuidevaneError `bad_usage` */
export function applyChange(inputs: PlanInputs, change: Change): PlanInputs {
  const { fleet } = inputs;
  switch (change.kind) {
    case "drain":
      return withEngines(inputs, [knownEngine(inputs, change.engine)], (live) => ({ ...live, adminState: "draining" }));
    case "lose-region": {
      const lost = [...fleet.engines.values()].filter(({ region }) => region === change.region);
      if (lost.length === 0) {
        const regions = new Set([...fleet.engines.values()].map(({ region }) => region));
        throw refusal(`no engine is in region ${change.region}; ${knownNames(change.region, regions)}`);
      }
      return withEngines(inputs, lost, (live) => ({ ...live, readyReplicas: 0 }));
    }
    case "demand": {
      checkFactor(change.factor);
      const { cluster, class: requestClass } = change;
      if (cluster !== undefined && !fleet.clusters.has(cluster))
        throw refusal(`${cluster} is not a cluster; ${knownNames(cluster, fleet.clusters.keys())}`);
      if (requestClass !== undefined && !fleet.classes.has(requestClass))
        throw refusal(`${requestClass} is not a class; ${knownNames(requestClass, fleet.classes.keys())}`);
      const demandRps = new Map(inputs.demandRps);
      for (const name of fleet.clusters.keys()) {
        for (const spec of fleet.classes.keys()) {
          const key = cellKey(name, spec);
          const isMeant = (cluster ?? name) === name && (requestClass ?? spec) === spec;
          if (isMeant && demandRps.has(key)) demandRps.set(key, demandRps.get(key)! * change.factor);
        }
      }
      return { ...inputs, demandRps };
    }
    case "capacity": {
      checkFactor(change.factor);
      const meant = change.engine === undefined ? null : knownEngine(inputs, change.engine);
      const engines = new Map(fleet.engines);
      for (const spec of meant === null ? fleet.engines.values() : [meant])
        engines.set(spec.id, { ...spec, capacityWps: spec.capacityWps * change.factor });
      return { ...inputs, fleet: { ...fleet, engines } };
    }
    case "new-engine": {
      if (fleet.engines.has(change.engine.id)) throw refusal(`${change.engine.id} is an engine already`);
      return {
        ...inputs,
        fleet: { ...fleet, engines: new Map([...fleet.engines, [change.engine.id, change.engine]]) },
      };
    }
  }
}

function alwaysSolve(inputs: PlanInputs): PlanInputs {
  return { ...inputs, fleet: { ...inputs.fleet, policy: { ...inputs.fleet.policy, gateMs: 0 } } };
}

function knownEngine({ fleet }: PlanInputs, id: string): EngineSpec {
  const spec = fleet.engines.get(id);
  if (spec === undefined) throw refusal(`${id} is not an engine; ${knownNames(id, fleet.engines.keys())}`);
  return spec;
}

function checkFactor(factor: number): void {
  if (!Number.isFinite(factor) || factor < 0) throw refusal(`a factor must be 0 or more, got ${factor}`);
}

function refusal(message: string): GuidevaneError {
  return new GuidevaneError("bad_usage", message);
}

function withEngines(
  inputs: PlanInputs,
  specs: readonly EngineSpec[],
  to: (live: LiveEngine) => LiveEngine,
): PlanInputs {
  const engines = new Map(inputs.engines);
  for (const { id, replicas, adminState } of specs)
    engines.set(id, to(engines.get(id) ?? { readyReplicas: replicas, severity: 0, adminState }));
  return { ...inputs, engines };
}

function figuresOf({ clusters }: Publication): FleetFigures {
  let demandRps = 0;
  let shedRps = 0;
  for (const { cells } of clusters.values()) {
    for (const cell of cells) {
      demandRps += cell.demandRps;
      shedRps += cell.demandRps * cell.shed;
    }
  }
  const [any] = clusters.values();
  const { objectiveMs, lowerBoundMs } = any?.certificate.churnFree ?? { objectiveMs: 0, lowerBoundMs: 0 };
  return { demandRps, shedRps, objectiveMs, lowerBoundMs, expectedLatencyMs: any?.certificate.expectedLatencyMs ?? 0 };
}

function engineMoves(before: Publication, after: Publication): EngineMove[] {
  const [was, is] = [enginesOf(before), enginesOf(after)];
  const nothing = { loadWps: 0, capacityWps: 0, worthMs: 0 };
  return [...new Set([...was.keys(), ...is.keys()])].map((engine) => {
    const [old, now] = [was.get(engine) ?? nothing, is.get(engine) ?? nothing];
    const move = (name: keyof typeof nothing): Move => ({ before: old[name], after: now[name] });
    return { engine, loadWps: move("loadWps"), capacityWps: move("capacityWps"), worthMs: move("worthMs") };
  });
}

function enginesOf({ clusters }: Publication) {
  return new Map([...clusters.values()].flatMap(({ engines }) => Object.entries(engines)));
}

/** Below this a weight has not moved. */
const STILL = 1e-9;

function weightMoves(before: Publication, after: Publication): WeightMove[] {
  const moves: WeightMove[] = [];
  for (const [cluster, { cells }] of after.clusters) {
    for (const cell of cells) {
      const old = before.clusters.get(cluster)?.cells.find((each) => each.class === cell.class);
      const was = new Map(old?.engines.map((engine, at) => [engine, old.weights[at]!]));
      const is = new Map(cell.engines.map((engine, at) => [engine, cell.weights[at]!]));
      for (const engine of new Set([...was.keys(), ...is.keys()])) {
        const weight = { before: was.get(engine) ?? 0, after: is.get(engine) ?? 0 };
        if (Math.abs(weight.after - weight.before) <= STILL) continue;
        const served = (each: typeof old): number => (each === undefined ? 0 : each.demandRps * (1 - each.shed));
        const rps = { before: served(old) * weight.before, after: served(cell) * weight.after };
        moves.push({ cluster, class: cell.class, engine, weight, rps });
      }
    }
  }
  return moves.sort((a, b) => Math.abs(b.rps.after - b.rps.before) - Math.abs(a.rps.after - a.rps.before));
}

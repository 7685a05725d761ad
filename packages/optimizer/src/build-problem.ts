import {
  type AdminState,
  type ClassSpec,
  type ClusterSpec,
  type CurveSet,
  DEMAND_FLOOR_RPS,
  type EngineSpec,
  evaluateCurves,
  type Fleet,
  ineligibleFor,
  type Profile,
  profileOf,
  rttMsOf,
  valueAt,
} from "@guidevane/core";
import { cellKey, type PlanInputs } from "./plan-types.ts";
import type { Problem, SolveStatus } from "./problem.ts";

/** What the numbers of a `Problem` stand for. */
export interface ProblemIndex {
  /** In order of clusters, then classes; cells that no engine may serve are in `leftOut`. */
  readonly cells: readonly CellFacts[];
  /** Every engine of the fleet, in file order. */
  readonly engines: readonly EngineFacts[];
  /** Per arc: round trip, and n_ke − rtt_ke: what a request takes at an idle engine; ms per request. */
  readonly arcRttMs: Float64Array;
  readonly arcServiceMs: Float64Array;
  /** P₀, ms per unit of work. */
  readonly leastShedMs: number;
  readonly leftOut: readonly LeftOut[];
}

export interface CellFacts {
  readonly cluster: ClusterSpec;
  readonly spec: ClassSpec;
  /** D_k, offered, at least `DEMAND_FLOOR_RPS`. */
  readonly demandRps: number;
}

export interface EngineFacts {
  readonly spec: EngineSpec;
  readonly profile: Profile;
  readonly adminState: AdminState;
  readonly plannedReady: number;
  /** 1 − severity. */
  readonly plannedFactor: number;
}

export interface LeftOut {
  readonly cluster: string;
  readonly requestClass: string;
  /** Per engine, what rules it out. */
  readonly why: readonly string[];
}

export type BuiltProblem =
  | { readonly ok: true; readonly problem: Problem; readonly index: ProblemIndex }
  | { readonly ok: false; readonly status: SolveStatus; readonly message: string };

export interface BuildOptions {
  /** Added to Q at full load, rising with utilisation, so that equal engines share a low load. Default 0.5; closed forms use 0. */
  readonly evenLoadMs?: number;
}

const EVEN_LOAD_MS = 0.5;
/** P₀ is never less, ms per unit of work. */
const LEAST_SHED_MS = 60_000;
/** P₀ over the dearest unit of work that can be served: capacity comes first. */
const SHED_FACTOR = 2;
/** A cell's shed price rises by this in each of so many equal parts of its demand: clusters share the pain. */
const SHED_STEP_MS = 300;
const SHED_STEPS = 20;

/**
 * The fleet, its demand and its engines' state as the problem of DESIGN §4. Pure; never throws: what can't be a problem
 * is a status with the input's name and value.
 */
export function buildProblem(inputs: PlanInputs, options: BuildOptions = {}): BuiltProblem {
  const wrong = wrongInput(inputs);
  if (wrong !== null) return { ok: false, ...wrong };
  const { fleet } = inputs;
  const engines = [...fleet.engines.values()].map((spec) => engineFacts(fleet, spec, inputs.engines.get(spec.id)));
  const cells: CellFacts[] = [];
  const leftOut: LeftOut[] = [];
  const arcStart = [0];
  const arcEngine: number[] = [];
  const rttMs: number[] = [];
  const serviceMs: number[] = [];
  // Distance aside, who may serve what is the same for every cluster: thousands of cells share a few lists.
  const able = new Map([...fleet.classes.values()].map((spec) => [spec, ableEngines(spec, engines)]));
  for (const cluster of fleet.clusters.values()) {
    const rtts = engines.map(({ spec }) => rttMsOf(fleet, cluster, spec));
    for (const spec of fleet.classes.values()) {
      const before = arcEngine.length;
      for (const { engine, idle } of able.get(spec)!) {
        if (spec.needs.networkMs !== null && rtts[engine]! > spec.needs.networkMs) continue;
        arcEngine.push(engine);
        rttMs.push(rtts[engine]!);
        serviceMs.push(idle);
      }
      if (arcEngine.length === before) {
        const why = engines.map(
          (facts, engine) => `${facts.spec.id}: ${ineligibleFor(spec, facts.spec, rtts[engine]!)?.message ?? ""}`,
        );
        leftOut.push({ cluster: cluster.name, requestClass: spec.name, why });
        continue;
      }
      arcStart.push(arcEngine.length);
      const demandRps = Math.max(DEMAND_FLOOR_RPS, inputs.demandRps.get(cellKey(cluster.name, spec.name)) ?? 0);
      cells.push({ cluster, spec, demandRps });
    }
  }

  const arcCostMs = new Float64Array(arcEngine.length);
  for (const [cell, { spec }] of cells.entries()) {
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++)
      arcCostMs[arc] = (rttMs[arc]! + serviceMs[arc]!) / spec.work;
  }
  const arcs = { arcStart: Uint32Array.from(arcStart), arcEngine: Uint32Array.from(arcEngine), arcCostMs };
  const curves = fleetCurves(fleet, cells, engines, arcs, options.evenLoadMs ?? EVEN_LOAD_MS);
  const leastShedMs = leastShedPrice(curves, arcs);
  const ranks = priorityRanks(fleet);
  const problem: Problem = {
    demandWps: Float64Array.from(cells, ({ demandRps, spec }) => demandRps * spec.work),
    ...arcs,
    curves,
    shedMs: Float64Array.from(cells, ({ spec }) => leastShedMs * (1 + ranks.get(spec.priority)!)),
    shedStepMs: SHED_STEP_MS,
    shedSteps: SHED_STEPS,
  };
  const index: ProblemIndex = {
    cells,
    engines,
    arcRttMs: Float64Array.from(rttMs),
    arcServiceMs: Float64Array.from(serviceMs),
    leastShedMs,
    leftOut,
  };
  return { ok: true, problem, index };
}

/** Engines that may serve a class from next door, and what a request of it takes there when they are idle, ms. */
function ableEngines(spec: ClassSpec, engines: readonly EngineFacts[]): { engine: number; idle: number }[] {
  return engines.flatMap(({ spec: engineSpec, profile }, engine) =>
    ineligibleFor(spec, engineSpec, 0) === null ? [{ engine, idle: idleMs(profile, spec) }] : [],
  );
}

/** n_ke − rtt_ke: time to the first token of an idle engine at this prompt's length, and its tokens. */
export function idleMs(profile: Profile, spec: Pick<ClassSpec, "promptTokens" | "outputTokens">): number {
  const longerPrompt = profile.prefillMsPerTok * (spec.promptTokens - profile.reference.promptTokens);
  return Math.max(0, valueAt(profile.ttftMs, 0) + longerPrompt) + spec.outputTokens * valueAt(profile.tbotMs, 0);
}

/** What load adds to a request of this class, ms: ΔTTFT + tokens × ΔTBOT at this utilisation. */
export function addedMs(profile: Profile, spec: Pick<ClassSpec, "outputTokens">, utilisation: number): number {
  const ttft = valueAt(profile.ttftMs, utilisation) - valueAt(profile.ttftMs, 0);
  const tbot = valueAt(profile.tbotMs, utilisation) - valueAt(profile.tbotMs, 0);
  return ttft + spec.outputTokens * tbot;
}

function engineFacts(
  fleet: Fleet,
  spec: EngineSpec,
  live: { readyReplicas: number; severity: number; adminState: AdminState } | undefined,
): EngineFacts {
  return {
    spec,
    profile: profileOf(fleet, spec),
    adminState: live?.adminState ?? spec.adminState,
    plannedReady: live?.readyReplicas ?? spec.replicas,
    plannedFactor: 1 - (live?.severity ?? 0),
  };
}

interface Arcs {
  readonly arcStart: Uint32Array;
  readonly arcEngine: Uint32Array;
  readonly arcCostMs: Float64Array;
}

/** U_e, and Q_e by the mix of the demand eligible for e (never of the routes: that would be a loop). */
function fleetCurves(
  fleet: Fleet,
  cells: readonly CellFacts[],
  engines: readonly EngineFacts[],
  arcs: Arcs,
  evenLoadMs: number,
): CurveSet {
  const eligible = engines.map(() => ({ requests: 0, outputTokens: 0, work: 0 }));
  for (const [cell, { spec, demandRps }] of cells.entries()) {
    for (let arc = arcs.arcStart[cell]!; arc < arcs.arcStart[cell + 1]!; arc++) {
      const mix = eligible[arcs.arcEngine[arc]!]!;
      mix.requests += demandRps;
      mix.outputTokens += demandRps * spec.outputTokens;
      mix.work += demandRps * spec.work;
    }
  }
  const knotStart = [0];
  const knotRho: number[] = [];
  const knotMs: number[] = [];
  for (const [engine, { profile }] of engines.entries()) {
    const mix = eligible[engine]!;
    const perWork = mix.work > 0 ? 1 / mix.work : 0;
    const shape = { outputTokens: mix.requests > 0 ? mix.outputTokens / mix.requests : 0 };
    // Where the measured curves end their slope goes on, so full load is a knot like another.
    const rhos = new Set([0, 1, ...[...profile.ttftMs, ...profile.tbotMs].map(([rho]) => rho)]);
    for (const rho of [...rhos].sort((a, b) => a - b)) {
      knotRho.push(rho);
      knotMs.push(mix.requests * perWork * addedMs(profile, shape, rho) + evenLoadMs * rho);
    }
    knotStart.push(knotRho.length);
  }
  const capacityWps = Float64Array.from(engines, ({ spec, adminState, plannedReady, plannedFactor }) =>
    adminState === "active" ? spec.capacityWps * plannedReady * plannedFactor : 0,
  );
  return {
    capacityWps,
    knotStart: Uint32Array.from(knotStart),
    knotRho: Float64Array.from(knotRho),
    knotMs: Float64Array.from(knotMs),
    headroom: fleet.policy.headroom,
    headroomMs: fleet.policy.headroomMs,
  };
}

/** P₀ = max(60,000 ms, 2·max of n_ke/a_k + φ′_e(U_e) over eligible arcs with U_e > 0), one for the fleet. */
function leastShedPrice(curves: CurveSet, { arcEngine, arcCostMs }: Arcs): number {
  const engines = curves.capacityWps.length;
  const full = {
    value: new Float64Array(engines),
    slope: new Float64Array(engines),
    curvature: new Float64Array(engines),
  };
  evaluateCurves(curves, curves.capacityWps, full);
  let dearest = 0;
  for (const [arc, engine] of arcEngine.entries()) {
    if (curves.capacityWps[engine]! > 0) dearest = Math.max(dearest, arcCostMs[arc]! + full.slope[engine]!);
  }
  return Math.max(LEAST_SHED_MS, SHED_FACTOR * dearest);
}

/** By priority: the number of distinct lower ones in the fleet. */
function priorityRanks({ classes }: Fleet): Map<number, number> {
  const priorities = [...new Set([...classes.values()].map(({ priority }) => priority))].sort((a, b) => a - b);
  return new Map(priorities.map((priority, rank) => [priority, rank]));
}

function wrongInput(inputs: PlanInputs): { status: SolveStatus; message: string } | null {
  const { fleet } = inputs;
  for (const [name, value, least, most] of named(inputs, fleet)) {
    if (!Number.isFinite(value)) return { status: "not-finite", message: `${name} is ${value}` };
    if (value < least || value > most)
      return {
        status: "invalid",
        message: `${name} is ${value}: it must be ${most === Number.POSITIVE_INFINITY ? `${least} or more` : `${least} to ${most}`}`,
      };
  }
  return null;
}

function* named(inputs: PlanInputs, fleet: Fleet): Generator<readonly [string, number, number, number]> {
  const most = Number.POSITIVE_INFINITY;
  yield ["wallMs", inputs.wallMs, 0, most];
  for (const [key, value] of inputs.demandRps) yield [`demandRps of ${key.replace("\n", " ")}`, value, 0, most];
  for (const [id, live] of inputs.engines) {
    yield [`readyReplicas of ${id}`, live.readyReplicas, 0, most];
    yield [`severity of ${id}`, live.severity, 0, 1];
  }
  for (const [cluster, count] of inputs.gateways) yield [`gateways of ${cluster}`, count, 0, most];
  for (const { id, capacityWps, replicas } of fleet.engines.values()) {
    yield [`engines.${id}.capacityWps`, capacityWps, 0, most];
    yield [`engines.${id}.replicas`, replicas, 0, most];
  }
  for (const { name, work, promptTokens, outputTokens } of fleet.classes.values()) {
    yield [`classes.${name}.work`, work, Number.MIN_VALUE, most];
    yield [`classes.${name}.promptTokens`, promptTokens, 0, most];
    yield [`classes.${name}.outputTokens`, outputTokens, 0, most];
  }
  for (const [pair, rttMs] of fleet.network.rttMs) yield [`round trip of ${pair.replace("\n", " ")}`, rttMs, 0, most];
  yield ["network.defaultRttMs", fleet.network.defaultRttMs, 0, most];
  yield ["policy.headroom", fleet.policy.headroom, 0, 1];
  yield ["policy.headroomMs", fleet.policy.headroomMs, 0, most];
  yield ["policy.churnMs", fleet.policy.churnMs, 0, most];
  yield ["policy.gateMs", fleet.policy.gateMs, 0, most];
}

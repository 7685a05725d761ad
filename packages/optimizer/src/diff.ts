import { isDeepStrictEqual } from "node:util";
import type { Publication, SnapshotClass } from "@guidevane/core";
import { servedPart } from "./churn.ts";
import { shareEqually } from "./equal-engines.ts";
import { cellKey } from "./plan-types.ts";
import type { Problem, Solution } from "./problem.ts";
import { createSimplex } from "./simplex/choose.ts";
import { loadProblem, type StoredProblem } from "./stored-problem.ts";

/** The inputs that are told apart, in the order in which they are changed from the one publication's to the other's. */
export const INPUT_KINDS = ["eligibility", "capacity", "network", "work", "demand"] as const;
export type InputKind = (typeof INPUT_KINDS)[number];

export interface Diff {
  readonly from: number;
  readonly to: number;
  /** What changed, a sentence each. */
  readonly changed: Readonly<Record<InputKind, readonly string[]>>;
  /** Weights that differ, the most requests first. */
  readonly weights: readonly ExplainedMove[];
}

export interface ExplainedMove {
  readonly cluster: string;
  readonly class: string;
  readonly engine: string;
  readonly before: number;
  readonly after: number;
  /** How much of the move each input explains; with `rest` (roundings, publications between, pins) they sum to it. */
  readonly parts: Readonly<Record<InputKind | "rest", number>>;
}

/**
 * What changed between two publications, and how much of each weight's move each input explains. The inputs are changed
 * one kind after another, and the fleet is solved again after each, always priced as a move from the first publication's
 * weights: what a kind explains is how the weights move at its step. Eligibility is who may serve what and who there is,
 * capacity what engines hold, network the round trips, work what requests and curves are, demand how many come and what
 * their mix makes of the curves.
 */
export function diff(
  before: Publication & { readonly version?: number },
  after: Publication & { readonly version?: number },
): Diff {
  const [a, b] = [readSide(before), readSide(after)];
  const taken = new Set<InputKind>();
  const simplex = createSimplex("auto");
  const changed = changesOf(a, b);
  const steps: Weights[] = [a.weights];
  for (const kind of INPUT_KINDS) {
    taken.add(kind);
    if (changed[kind].length === 0) {
      steps.push(steps.at(-1)!);
      continue;
    }
    const mixed = mix(a, b, taken);
    steps.push(weightsOf(mixed, shareEqually<Solution>(mixed.problem, simplex.solve(mixed.problem))));
  }
  steps.push(b.weights);
  return {
    from: before.version ?? 0,
    to: after.version ?? 0,
    changed,
    weights: explainMoves(steps, b.demandRps),
  };
}

/** By cell, then engine id. */
type Weights = ReadonlyMap<string, ReadonlyMap<string, number>>;

interface Side {
  readonly stored: StoredProblem;
  readonly cells: readonly string[];
  readonly engines: readonly string[];
  readonly classes: Readonly<Record<string, SnapshotClass>>;
  readonly weights: Weights;
  readonly demandRps: ReadonlyMap<string, number>;
  /** Part of the demand that the weights carry, by cell. */
  readonly served: ReadonlyMap<string, number>;
  /** By cell and engine id; undefined for an engine that the cell's cluster does not know. */
  readonly rttMs: (cell: number, engine: string) => number | undefined;
}

interface Mixed {
  readonly problem: Problem;
  readonly cells: readonly string[];
  readonly engines: readonly string[];
}

function readSide(publication: Publication): Side {
  const { stored } = loadProblem(publication.problem);
  const cells = stored.cells.map((each) => cellKey(each.cluster, each.class));
  const weights = new Map<string, Map<string, number>>();
  for (const { cluster, cells: shown } of publication.clusters.values()) {
    for (const cell of shown)
      weights.set(cellKey(cluster, cell.class), new Map(cell.engines.map((engine, at) => [engine, cell.weights[at]!])));
  }
  const served = new Map(
    [...publication.clusters.values()].flatMap(({ cluster, cells: shown }) =>
      shown.map((cell) => [cellKey(cluster, cell.class), servedPart(cell.shed)] as const),
    ),
  );
  const [any] = publication.clusters.values();
  return {
    served,
    stored,
    cells,
    engines: stored.engines,
    classes: any?.classes ?? {},
    weights,
    demandRps: new Map(stored.cells.map(({ demandRps }, cell) => [cells[cell]!, demandRps])),
    rttMs: (cell, engine) => publication.clusters.get(stored.cells[cell]!.cluster)?.engines[engine]?.rttMs,
  };
}

/** The first side's problem with the kinds that were taken from the second's; what only one side has comes from it. */
function mix(a: Side, b: Side, taken: ReadonlySet<InputKind>): Mixed {
  const frame = taken.has("eligibility") ? b : a;
  const other = frame === b ? a : b;
  const { stored } = frame;
  const cellAt = new Map(other.cells.map((name, cell) => [name, cell]));
  const engineAt = new Map(other.engines.map((id, engine) => [id, engine]));
  /** The side and number that a kind of a cell or an engine is read from. */
  const pick = (
    kind: InputKind,
    at: number,
    twins: ReadonlyMap<string, number>,
    names: readonly string[],
  ): [Side, number] => {
    const wanted = taken.has(kind) ? b : a;
    const twin = twins.get(names[at]!);
    return wanted === frame || twin === undefined ? [frame, at] : [other, twin];
  };
  const cellOf = (kind: InputKind, cell: number) => pick(kind, cell, cellAt, frame.cells);
  const engineOf = (kind: InputKind, engine: number) => pick(kind, engine, engineAt, frame.engines);
  const workOf = (cell: number): number => {
    const [side, at] = cellOf("work", cell);
    return side.stored.cells[at]!.work;
  };
  const arcCostMs = Float64Array.from(stored.arcCostMs);
  for (let cell = 0; cell < frame.cells.length; cell++) {
    const [near, nearAt] = cellOf("network", cell);
    const [by, byAt] = cellOf("work", cell);
    const costs = arcCosts(by.stored, byAt);
    for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++) {
      const engine = frame.engines[stored.arcEngine[arc]!]!;
      const ownMs = frame.rttMs(cell, engine) ?? 0;
      const far = near.rttMs(nearAt, engine) ?? ownMs;
      const known = costs.get(engine);
      // n − rtt of the side that says what work is; an arc that it lacks is read as the frame has it.
      const serviceMs =
        known === undefined
          ? stored.arcCostMs[arc]! * stored.cells[cell]!.work - ownMs
          : known * by.stored.cells[byAt]!.work - (by.rttMs(byAt, engine) ?? ownMs);
      arcCostMs[arc] = Math.max(0, far + serviceMs) / workOf(cell);
    }
  }
  const knotStart = [0];
  const knotRho: number[] = [];
  const knotMs: number[] = [];
  const curveKind = curvesMovedBy(a, b);
  for (let engine = 0; engine < frame.engines.length; engine++) {
    const [side, at] = engineOf(curveKind, engine);
    const [start, end] = [side.stored.knotStart[at]!, side.stored.knotStart[at + 1]!];
    knotRho.push(...side.stored.knotRho.slice(start, end));
    knotMs.push(...side.stored.knotMs.slice(start, end));
    knotStart.push(knotRho.length);
  }
  const policy = taken.has("work") ? b.stored : a.stored;
  const demandWps = Float64Array.from(frame.cells, (_, cell) => {
    const [side, at] = cellOf("demand", cell);
    return side.stored.cells[at]!.demandRps * workOf(cell);
  });
  const problem: Problem = {
    demandWps,
    arcStart: Uint32Array.from(stored.arcStart),
    arcEngine: Uint32Array.from(stored.arcEngine),
    arcCostMs,
    curves: {
      capacityWps: Float64Array.from(frame.engines, (_, engine) => {
        const [side, at] = engineOf("capacity", engine);
        return side.stored.capacityWps[at]!;
      }),
      knotStart: Uint32Array.from(knotStart),
      knotRho: Float64Array.from(knotRho),
      knotMs: Float64Array.from(knotMs),
      headroom: policy.headroom,
      headroomMs: policy.headroomMs,
    },
    shedMs: Float64Array.from(frame.cells, (_, cell) => {
      const [side, at] = cellOf("work", cell);
      return side.stored.shedMs[at]!;
    }),
    shedStepMs: policy.shedStepMs,
    shedSteps: policy.shedSteps,
  };
  const moved = {
    problem: { ...problem, ...churnFrom(a, b, frame, problem, workOf) },
    cells: frame.cells,
    engines: frame.engines,
  };
  return moved;
}

/** Moves from the first side's weights, at the price that the second was solved with. */
function churnFrom(
  a: Side,
  b: Side,
  frame: Side,
  problem: Problem,
  workOf: (cell: number) => number,
): Pick<Problem, "churn"> {
  const { churn } = b.stored;
  if (churn === undefined) return {};
  const churnMs = b.cells.reduce(
    (most, _, cell) => Math.max(most, churn.moveMs[cell]! * b.stored.cells[cell]!.work),
    0,
  );
  const referenceWps = new Float64Array(problem.arcEngine.length);
  const moveMs = new Float64Array(problem.arcEngine.length);
  for (const [cell, name] of frame.cells.entries()) {
    const weights = a.weights.get(name);
    if (weights === undefined) continue;
    const servedWps = problem.demandWps[cell]! * a.served.get(name)!;
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      referenceWps[arc] = (weights.get(frame.engines[problem.arcEngine[arc]!]!) ?? 0) * servedWps;
      moveMs[arc] = churnMs / workOf(cell);
    }
  }
  return { churn: { referenceWps, moveMs } };
}

/** c by engine id. */
function arcCosts(stored: StoredProblem, cell: number): Map<string, number> {
  const costs = new Map<string, number>();
  for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++)
    costs.set(stored.engines[stored.arcEngine[arc]!]!, stored.arcCostMs[arc]!);
  return costs;
}

/** Flows below this part of a cell are none. */
const NOTHING = 1e-9;

function weightsOf({ problem, cells, engines }: Mixed, { flowWps }: Solution): Weights {
  const weights = new Map<string, Map<string, number>>();
  for (const [cell, name] of cells.entries()) {
    const [start, end] = [problem.arcStart[cell]!, problem.arcStart[cell + 1]!];
    const served = flowWps.subarray(start, end).reduce((sum, flow) => sum + flow, 0);
    const own = new Map<string, number>();
    for (let arc = start; arc < end; arc++) {
      const weight = served > 0 ? flowWps[arc]! / served : 0;
      if (weight > NOTHING) own.set(engines[problem.arcEngine[arc]!]!, weight);
    }
    weights.set(name, own);
  }
  return weights;
}

/** Moves of less are not worth a line: a fraction of a slot. */
const STILL = 1e-6;

function explainMoves(steps: readonly Weights[], demandRps: ReadonlyMap<string, number>): ExplainedMove[] {
  const [first, last] = [steps[0]!, steps.at(-1)!];
  const moves: (ExplainedMove & { readonly rps: number })[] = [];
  for (const name of new Set([...first.keys(), ...last.keys()])) {
    const [cluster, requestClass] = name.split("\n") as [string, string];
    for (const engine of new Set(steps.flatMap((step) => [...(step.get(name)?.keys() ?? [])]))) {
      const at = steps.map((step) => step.get(name)?.get(engine) ?? 0);
      const part = (step: number): number => at[step + 1]! - at[step]!;
      const [before, after] = [at[0]!, at.at(-1)!];
      if (at.every((weight) => Math.abs(weight - before) < STILL)) continue;
      const parts = {
        eligibility: part(0),
        capacity: part(1),
        network: part(2),
        work: part(3),
        demand: part(4),
        rest: part(5),
      };
      const rps = Math.abs(after - before) * (demandRps.get(name) ?? 0);
      moves.push({ cluster, class: requestClass, engine, before, after, parts, rps });
    }
  }
  moves.sort((one, other) => other.rps - one.rps);
  return moves.map(({ rps: _, ...move }) => move);
}

/** Curves follow the mix of the demand; where classes, knots or nothing else changed it is the curves themselves that did. */
function curvesMovedBy(a: Side, b: Side): "demand" | "work" {
  const isSameShape = isDeepStrictEqual(a.classes, b.classes) && isDeepStrictEqual(a.stored.knotRho, b.stored.knotRho);
  const hasOtherDemand = b.stored.cells.some(({ demandRps }, cell) => demandRps !== a.demandRps.get(b.cells[cell]!));
  return isSameShape && hasOtherDemand ? "demand" : "work";
}

function changesOf(a: Side, b: Side): Record<InputKind, string[]> {
  const changed: Record<InputKind, string[]> = { eligibility: [], capacity: [], network: [], work: [], demand: [] };
  const name = (cell: string): string => cell.replace("\n", " ");
  for (const id of a.engines) if (!b.engines.includes(id)) changed.eligibility.push(`engine ${id} is gone`);
  for (const id of b.engines) if (!a.engines.includes(id)) changed.eligibility.push(`engine ${id} is new`);
  for (const cell of a.cells) if (!b.cells.includes(cell)) changed.eligibility.push(`${name(cell)} is gone`);
  const [engineAt, cellAt] = [
    new Map(a.engines.map((id, at) => [id, at])),
    new Map(a.cells.map((each, at) => [each, at])),
  ];
  for (const [engine, id] of b.engines.entries()) {
    const twin = engineAt.get(id);
    if (twin === undefined) continue;
    const [was, is] = [a.stored.capacityWps[twin]!, b.stored.capacityWps[engine]!];
    if (was !== is) changed.capacity.push(`${id} holds ${figure(is)} units/s, was ${figure(was)}`);
  }
  for (const [cell, key] of b.cells.entries()) {
    const twin = cellAt.get(key);
    if (twin === undefined) {
      changed.eligibility.push(`${name(key)} is new`);
      continue;
    }
    const [was, is] = [a.stored.cells[twin]!, b.stored.cells[cell]!];
    if (was.demandRps !== is.demandRps)
      changed.demand.push(`${name(key)}: ${figure(is.demandRps)} requests/s, was ${figure(was.demandRps)}`);
    if (was.work !== is.work)
      changed.work.push(`${name(key)}: ${figure(is.work)} units a request, was ${figure(was.work)}`);
    if (a.stored.shedMs[twin] !== b.stored.shedMs[cell]) changed.work.push(`${name(key)}: another price of shedding`);
    const [old, now] = [arcCosts(a.stored, twin), arcCosts(b.stored, cell)];
    for (const id of old.keys())
      if (!now.has(id) && b.engines.includes(id)) changed.eligibility.push(`${id} may no longer serve ${name(key)}`);
    for (const [id, cost] of now) {
      const before = old.get(id);
      if (before === undefined) {
        if (engineAt.has(id)) changed.eligibility.push(`${id} may now serve ${name(key)}`);
        continue;
      }
      const [far, near] = [b.rttMs(cell, id) ?? 0, a.rttMs(twin, id) ?? 0];
      if (far !== near) changed.network.push(`${id} is ${figure(far)} ms from ${is.cluster}, was ${figure(near)}`);
      const service = cost * is.work - far - (before * was.work - near);
      if (Math.abs(service) > 1e-9)
        changed.work.push(`${id}: ${name(key)} takes ${service.toPrecision(3)} ms more there when idle`);
    }
  }
  const { headroom, headroomMs } = b.stored;
  if (headroom !== a.stored.headroom || headroomMs !== a.stored.headroomMs) changed.work.push("the policy of headroom");
  const hasOtherCurves = ["knotRho", "knotMs"].some(
    (column) => !isDeepStrictEqual(a.stored[column as "knotRho"], b.stored[column as "knotRho"]),
  );
  if (hasOtherCurves && curvesMovedBy(a, b) === "work" && changed.eligibility.length === 0)
    changed.work.push("the curves of engines");
  return changed;
}

/** To six digits, as people read it. */
function figure(value: number): string {
  return String(Number(value.toPrecision(6)));
}

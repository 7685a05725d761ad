import { arcCosts, curvesMovedBy, type InputKind, type Side } from "./diff-side.ts";
import type { Problem } from "./problem.ts";

export interface Mixed {
  readonly problem: Problem;
  readonly cells: readonly string[];
  readonly engines: readonly string[];
}

/** The first side's problem with the kinds that were taken from the second's; what only one side has comes from it. */
export function mix(a: Side, b: Side, taken: ReadonlySet<InputKind>): Mixed {
  const sources = sourcesOf(a, b, taken);
  const { frame, cellOf, engineOf, workOf } = sources;
  const policy = taken.has("work") ? b.stored : a.stored;
  const problem: Problem = {
    demandWps: Float64Array.from(frame.cells, (_, cell) => {
      const [side, at] = cellOf("demand", cell);
      return side.stored.cells[at]!.demandRps * workOf(cell);
    }),
    arcStart: Uint32Array.from(frame.stored.arcStart),
    arcEngine: Uint32Array.from(frame.stored.arcEngine),
    arcCostMs: mixedArcCosts(sources),
    curves: {
      capacityWps: Float64Array.from(frame.engines, (_, engine) => {
        const [side, at] = engineOf("capacity", engine);
        return side.stored.capacityWps[at]!;
      }),
      ...mixedKnots(sources, curvesMovedBy(a, b)),
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
  return { problem: { ...problem, ...churnFrom(a, b, sources, problem) }, cells: frame.cells, engines: frame.engines };
}

/** Which side a mixed problem takes what from. */
interface Sources {
  /** It says which cells, engines and arcs there are. */
  readonly frame: Side;
  /** The side, and the number there, that a kind of one of the frame's cells or engines is read from. */
  readonly cellOf: (kind: InputKind, cell: number) => readonly [Side, number];
  readonly engineOf: (kind: InputKind, engine: number) => readonly [Side, number];
  /** Work units a request. */
  readonly workOf: (cell: number) => number;
}

function sourcesOf(a: Side, b: Side, taken: ReadonlySet<InputKind>): Sources {
  const frame = taken.has("eligibility") ? b : a;
  const other = frame === b ? a : b;
  const reader = (names: readonly string[], otherNames: readonly string[]): Sources["cellOf"] => {
    const twins = new Map(otherNames.map((name, at) => [name, at]));
    return (kind, at) => {
      const wanted = taken.has(kind) ? b : a;
      const twin = twins.get(names[at]!);
      return wanted === frame || twin === undefined ? [frame, at] : [other, twin];
    };
  };
  const cellOf = reader(frame.cells, other.cells);
  return {
    frame,
    cellOf,
    engineOf: reader(frame.engines, other.engines),
    workOf(cell) {
      const [side, at] = cellOf("work", cell);
      return side.stored.cells[at]!.work;
    },
  };
}

function mixedArcCosts({ frame, cellOf, workOf }: Sources): Float64Array {
  const { stored } = frame;
  const arcCostMs = Float64Array.from(stored.arcCostMs);
  for (let cell = 0; cell < frame.cells.length; cell++) {
    const [near, nearAt] = cellOf("network", cell);
    const [by, byAt] = cellOf("work", cell);
    const costs = arcCosts(by.stored, byAt);
    for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++) {
      const engine = frame.engines[stored.arcEngine[arc]!]!;
      const ownMs = frame.rttMs(cell, engine) ?? 0;
      const rttMs = near.rttMs(nearAt, engine) ?? ownMs;
      const known = costs.get(engine);
      // n − rtt of the side that says what work is; an arc that it lacks is read as the frame has it.
      const serviceMs =
        known === undefined
          ? stored.arcCostMs[arc]! * stored.cells[cell]!.work - ownMs
          : known * by.stored.cells[byAt]!.work - (by.rttMs(byAt, engine) ?? ownMs);
      arcCostMs[arc] = Math.max(0, rttMs + serviceMs) / workOf(cell);
    }
  }
  return arcCostMs;
}

/** @param movedBy the kind that curves are taken with */
function mixedKnots(
  { frame, engineOf }: Sources,
  movedBy: InputKind,
): Pick<Problem["curves"], "knotStart" | "knotRho" | "knotMs"> {
  const knotStart = [0];
  const knotRho: number[] = [];
  const knotMs: number[] = [];
  for (let engine = 0; engine < frame.engines.length; engine++) {
    const [side, at] = engineOf(movedBy, engine);
    const [start, end] = [side.stored.knotStart[at]!, side.stored.knotStart[at + 1]!];
    knotRho.push(...side.stored.knotRho.slice(start, end));
    knotMs.push(...side.stored.knotMs.slice(start, end));
    knotStart.push(knotRho.length);
  }
  return {
    knotStart: Uint32Array.from(knotStart),
    knotRho: Float64Array.from(knotRho),
    knotMs: Float64Array.from(knotMs),
  };
}

/** Moves from the first side's weights, at the price that the second was solved with. */
function churnFrom(a: Side, b: Side, { frame, workOf }: Sources, problem: Problem): Pick<Problem, "churn"> {
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

import { valueAt } from "@guidevane/core";
import type { ProblemIndex } from "./build-problem.ts";
import type { Problem, Solution } from "./problem.ts";

/** What a cell is to do: engines of its arcs with their weights, rising in arc number; weights sum to 1. */
export interface CellWeights {
  readonly arcs: readonly number[];
  readonly weights: readonly number[];
  /** Fraction of demand to shed. */
  readonly shed: number;
}

/** The weights of a publication, by engine id, of one cell; null where it had none. */
export type PreviousWeights = (cell: number) => ReadonlyMap<string, number> | null;

/**
 * Flows to weights: x_ke ÷ Σ_e x_ke. What is below half a slot of the ring is dropped. At engines that are full, a weight
 * is a whole number of slots, rounded down, where others of the cell have room: a ring's rounding must not overfill them.
 * A cell that is shed whole keeps its previous weights, or starts with those of a gateway that knows no plan.
 */
export function cellWeights(
  problem: Problem,
  index: ProblemIndex,
  solution: Solution,
  slots: number,
  previous: PreviousWeights,
): CellWeights[] {
  return index.cells.map((_, cell) => {
    const demand = problem.demandWps[cell]!;
    const start = problem.arcStart[cell]!;
    const flows = solution.flowWps.subarray(start, problem.arcStart[cell + 1]!);
    const served = flows.reduce((sum, flow) => sum + flow, 0);
    if (served <= NOTHING * demand) return { ...fallback(problem, index, cell, previous(cell)), shed: 1 };
    const used = worthSlots(
      Array.from(flows, (flow, at) => ({ arc: start + at, weight: flow / served })),
      slots,
    );
    const weights = roundFull(
      normalise(used.map(({ weight }) => weight)),
      used.map(({ arc }) => isFull(problem, solution, problem.arcEngine[arc]!)),
      slots,
    );
    const part = solution.shedWps[cell]! / demand;
    const shed = part <= NOTHING ? 0 : Math.min(1, part);
    const kept = used.map(({ arc }, at) => ({ arc, weight: weights[at]! })).filter(({ weight }) => weight > 0);
    return { arcs: kept.map(({ arc }) => arc), weights: kept.map(({ weight }) => weight), shed };
  });
}

const NOTHING = 1e-9;
const HALF_SLOT = 0.5;
const FULL = 1 - 1e-6;

/** Those of half a slot or more; where there are so many equal ones that none has it, the first so many as there are slots. */
function worthSlots<Each extends { arc: number; weight: number }>(
  all: readonly Each[],
  slots: number,
): readonly Each[] {
  const used = all.filter(({ weight }) => weight * slots >= HALF_SLOT);
  if (used.length > 0) return used;
  const largest = all.toSorted((a, b) => b.weight - a.weight || a.arc - b.arc).slice(0, slots);
  return largest.toSorted((a, b) => a.arc - b.arc);
}

function isFull(problem: Problem, { loadWps }: Solution, engine: number): boolean {
  return loadWps[engine]! >= problem.curves.capacityWps[engine]! * FULL;
}

function roundFull(weights: readonly number[], full: readonly boolean[], slots: number): number[] {
  const room = weights.reduce((sum, weight, at) => sum + (full[at] ? 0 : weight), 0);
  if (room === 0) return [...weights];
  const floors = weights.map((weight, at) => (full[at] ? Math.floor(weight * slots + 1e-9) / slots : 0));
  const rest = 1 - floors.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight, at) => (full[at] ? floors[at]! : (weight / room) * rest));
}

/** The previous weights among engines that may still serve the cell, else bootstrap's: capacity ÷ time to the first token. */
function fallback(
  problem: Problem,
  index: ProblemIndex,
  cell: number,
  previous: ReadonlyMap<string, number> | null,
): { arcs: number[]; weights: number[] } {
  const arcs = Array.from(
    { length: problem.arcStart[cell + 1]! - problem.arcStart[cell]! },
    (_, at) => problem.arcStart[cell]! + at,
  );
  const engineOf = (arc: number) => index.engines[problem.arcEngine[arc]!]!;
  const before = arcs.map((arc) => previous?.get(engineOf(arc).spec.id) ?? 0);
  const weights = before.some((weight) => weight > 0)
    ? before
    : arcs.map((arc) => {
        const { spec, profile } = engineOf(arc);
        return (spec.capacityWps * spec.replicas) / (index.arcRttMs[arc]! + valueAt(profile.ttftMs, 0) + 1);
      });
  const kept = arcs.map((arc, at) => ({ arc, weight: weights[at]! })).filter(({ weight }) => weight > 0);
  return { arcs: kept.map(({ arc }) => arc), weights: normalise(kept.map(({ weight }) => weight)) };
}

function normalise(weights: readonly number[]): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

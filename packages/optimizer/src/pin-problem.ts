import type { Pin, StoredPublication } from "@guidevane/core";
import { lowerBound, objective } from "./bound.ts";
import { cellKey } from "./plan-types.ts";
import type { Problem, Solution } from "./problem.ts";
import type { Names, Solved } from "./solve-plan.ts";

/**
 * Weights by an operator's word, as a problem that every solver takes: a pinned cell is left without demand, and for each
 * engine of its pin there is a cell of its own with that part of the demand and that one arc. The rest of the fleet is
 * planned around it, capacities hold, and what a pinned engine can't take is shed.
 */
export interface PinnedProblem {
  readonly problem: Problem;
  readonly names: Names;
  /** The solution in the flows of the problem without pins; its bound is that of the free problem too. */
  unpin(solved: Solved): Solved;
}

/** One engine's part of a pinned cell. */
interface Part {
  readonly cell: number;
  readonly arc: number;
  readonly weight: number;
}

/**
 * A pin's engines without capacity leave their part to its others; a pin with none left, or of a cell that is not planned,
 * does nothing.
 */
export function pinProblem(problem: Problem, names: Names, pins: readonly Pin[]): PinnedProblem {
  const parts = pins.flatMap((pin) => partsOf(problem, names, pin));
  if (parts.length === 0) return { problem, names, unpin: (solved) => solved };
  const { arcStart, arcEngine, arcCostMs, churn } = problem;
  const arcs = arcEngine.length;
  const demandWps = problem.demandWps.slice();
  for (const { cell } of parts) demandWps[cell] = 0;
  const pinned: Problem = {
    ...problem,
    demandWps: concat(
      demandWps,
      parts.map(({ cell, weight }) => problem.demandWps[cell]! * weight),
    ),
    arcStart: Uint32Array.from([...arcStart, ...parts.map((_, part) => arcs + part + 1)]),
    arcEngine: Uint32Array.from([...arcEngine, ...parts.map(({ arc }) => arcEngine[arc]!)]),
    arcCostMs: concat(
      arcCostMs,
      parts.map(({ arc }) => arcCostMs[arc]!),
    ),
    shedMs: concat(
      problem.shedMs,
      parts.map(({ cell }) => problem.shedMs[cell]!),
    ),
    ...(churn === undefined ? {} : { churn: pinnedChurn(problem, churn, parts) }),
  };
  return {
    problem: pinned,
    names: {
      cells: [
        ...names.cells,
        ...parts.map(({ cell, arc }) => `${names.cells[cell]}\n${names.engines[arcEngine[arc]!]}`),
      ],
      engines: names.engines,
    },
    unpin: (solved) => ({ ...solved, solution: unpinned(problem, solved.solution, parts) }),
  };
}

/** Whether the pins in force are others than those that the present weights were published with; says which. */
export function changedPin(pins: readonly Pin[], previous: StoredPublication): string | null {
  const inForce = new Map(pins.map((pin) => [cellKey(pin.cluster, pin.class), pin]));
  for (const { cells } of previous.clusters.values()) {
    for (const cell of cells) {
      const pin = inForce.get(cellKey(cell.cluster, cell.class));
      if (JSON.stringify(cell.pin ?? null) !== JSON.stringify(pin === undefined ? null : publishedPin(pin)))
        return `the pin of ${cell.cluster} ${cell.class} changed`;
    }
  }
  return null;
}

/** A pin as its cell's snapshot shows it. */
export function publishedPin({ weights, until }: Pin): { weights: Record<string, number>; until: string } {
  return { weights: { ...weights }, until };
}

function partsOf({ arcStart, arcEngine, curves }: Problem, names: Names, pin: Pin): Part[] {
  const cell = names.cells.indexOf(cellKey(pin.cluster, pin.class));
  if (cell < 0) return [];
  const parts: Part[] = [];
  for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
    const id = names.engines[arcEngine[arc]!]!;
    const weight = Object.hasOwn(pin.weights, id) ? pin.weights[id]! : 0;
    if (weight > 0 && curves.capacityWps[arcEngine[arc]!]! > 0) parts.push({ cell, arc, weight });
  }
  const sum = parts.reduce((total, { weight }) => total + weight, 0);
  return parts.map((part) => ({ ...part, weight: part.weight / sum }));
}

/** A pinned cell moves at nobody's price: the operator has said so. */
function pinnedChurn({ arcStart }: Problem, churn: NonNullable<Problem["churn"]>, parts: readonly Part[]) {
  const referenceWps = churn.referenceWps.slice();
  const moveMs = churn.moveMs.slice();
  for (const { cell } of parts) {
    referenceWps.fill(0, arcStart[cell], arcStart[cell + 1]);
    moveMs.fill(0, arcStart[cell], arcStart[cell + 1]);
  }
  const none = parts.map(() => 0);
  return { referenceWps: concat(referenceWps, none), moveMs: concat(moveMs, none) };
}

function unpinned(problem: Problem, solution: Solution, parts: readonly Part[]): Solution {
  if (solution.status !== "solved" && solution.status !== "capped") return solution;
  const [arcs, cells] = [problem.arcEngine.length, problem.demandWps.length];
  const flowWps = solution.flowWps.slice(0, arcs);
  const shedWps = solution.shedWps.slice(0, cells);
  for (const [at, { cell, arc }] of parts.entries()) {
    flowWps[arc]! += solution.flowWps[arcs + at]!;
    shedWps[cell]! += solution.shedWps[cells + at]!;
  }
  const flows = { flowWps, shedWps, loadWps: solution.loadWps };
  return {
    ...solution,
    ...flows,
    objectiveMs: objective(problem, flows),
    lowerBoundMs: lowerBound(problem, solution.priceMs).lowerBoundMs,
  };
}

function concat(column: Float64Array, values: readonly number[]): Float64Array {
  const all = new Float64Array(column.length + values.length);
  all.set(column);
  all.set(values, column.length);
  return all;
}

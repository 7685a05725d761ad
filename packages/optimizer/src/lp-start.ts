import { loadAt, marginalAt } from "./engine-cost.ts";
import type { Found, LpFleet } from "./lp-fleet.ts";
import type { Problem } from "./problem.ts";

/** Where the simplex method starts: a basis that is feasible whatever this says, and the better the fewer pivots follow. */
export interface Start {
  /** Per group. */
  readonly loadWps: ArrayLike<number>;
  /** Arcs in the order in which they are filled, each as far as demand and load allow. */
  readonly order: readonly ArcOfCell[];
  /** Steps of a cell's demand (of the problem's `shedSteps`) that are shed. */
  readonly shedSteps: (cell: number) => number;
}

export interface ArcOfCell {
  readonly cell: number;
  /** The arc's number in the cell. */
  readonly at: number;
}

export interface Level {
  readonly loadWps: Float64Array;
  readonly marginalMs: Float64Array;
}

/** Loads at which every group has the same marginal and the fleet takes its demand: the optimum if all engines were equally far. */
export function levelLoads(fleet: LpFleet): Level {
  const total = fleet.problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  const { curves } = fleet.problem;
  const at = (priceMs: number) =>
    Float64Array.from(fleet.groups, ({ engine, engines, reachWps }) =>
      Math.min(loadAt(curves, engine, priceMs) * engines.length, reachWps),
    );
  let [low, high] = [0, fleet.problem.shedMs.reduce((most, price) => Math.max(most, price), 0)];
  for (let halving = 0; halving < HALVINGS; halving++) {
    const middle = (low + high) / 2;
    if (at(middle).reduce((sum, load) => sum + load, 0) < total) low = middle;
    else high = middle;
  }
  const loadWps = at(high);
  const marginalMs = Float64Array.from(fleet.groups, ({ engine, engines }, group) =>
    marginalAt(curves, engine, loadWps[group]! / engines.length),
  );
  return { loadWps, marginalMs };
}

/** A double has no more to halve. */
const HALVINGS = 60;

/** Whole steps shed per cell when the cheapest are shed until `excessWps` is gone, wherever it arises. */
export function cheapestSheds(problem: Problem, excessWps: number): number[] {
  const taken = Array.from(problem.demandWps, () => 0);
  const offers = taken.flatMap((_, cell) =>
    Array.from({ length: problem.shedSteps }, (_, step) => ({
      cell,
      ms: problem.shedMs[cell]! + step * problem.shedStepMs,
    })),
  );
  offers.sort((a, b) => a.ms - b.ms || a.cell - b.cell);
  let left = excessWps;
  for (const { cell } of offers) {
    if (left <= 0) break;
    taken[cell]!++;
    left -= problem.demandWps[cell]! / problem.shedSteps;
  }
  return taken;
}

/** Cells by falling demand, each to its cheapest groups that have load left. */
export function fillOrder(
  fleet: LpFleet,
  { loadWps, marginalMs }: Level,
  servedWps: (cell: number) => number,
): ArcOfCell[] {
  const left = Float64Array.from(loadWps);
  const cells = Array.from(fleet.problem.demandWps, (_, cell) => ({ demand: servedWps(cell), cell }));
  cells.sort((a, b) => b.demand - a.demand || a.cell - b.cell);
  return cells.flatMap(({ demand, cell }) => {
    const arcs = fleet.arcs[cell]!.map(({ group, costMs }, at) => ({ at, group, ms: costMs + marginalMs[group]! }));
    arcs.sort((a, b) => a.ms - b.ms || a.at - b.at);
    const order: ArcOfCell[] = [];
    let rest = demand;
    for (const { at, group } of arcs) {
      if (rest <= 0) break;
      if (left[group]! <= 0) continue;
      const taken = Math.min(rest, left[group]!);
      left[group]! -= taken;
      rest -= taken;
      order.push({ cell, at });
    }
    return order;
  });
}

/** The arcs in use, leaves of their forest first: filled in this order each takes what it carried. */
export function leafOrder(fleet: LpFleet, { folded, flows }: Found): ArcOfCell[] {
  let rest = folded.flatMap((row, cell) =>
    row.flatMap((flow, at) => (flow > 0 ? [{ cell, at, group: fleet.arcs[cell]![at]!.group }] : [])),
  );
  // What a cell sheds is an arc of its own that is never filled: such a cell is no leaf.
  const ofCell = Array.from(flows.shedWps, (shed) => (shed > 0 ? 1 : 0));
  const ofGroup = fleet.groups.map(() => 0);
  for (const { cell, group } of rest) {
    ofCell[cell]!++;
    ofGroup[group]!++;
  }
  const order: ArcOfCell[] = [];
  while (rest.length > 0) {
    const inner = rest.filter((arc) => {
      if (ofCell[arc.cell] !== 1 && ofGroup[arc.group] !== 1) return true;
      order.push({ cell: arc.cell, at: arc.at });
      ofCell[arc.cell]!--;
      ofGroup[arc.group]!--;
      return false;
    });
    // On a cycle no arc is a leaf: rounding made it, and its arcs go as they stand.
    if (inner.length === rest.length) return [...order, ...inner.map(({ cell, at }) => ({ cell, at }))];
    rest = inner;
  }
  return order;
}

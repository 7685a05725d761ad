import { kinksOf } from "./engine-cost.ts";
import type { Found, Group, LpFleet } from "./lp-fleet.ts";
import { atLeastIdle } from "./lp-price.ts";
import { cheapestSheds, fillOrder, leafOrder, levelLoads, type Start } from "./lp-start.ts";
import type { Problem } from "./problem.ts";

/** What one pass of the programme offers: breakpoints, corners of the shed price, arcs, and where to start. */
export interface Grid {
  readonly pass: number;
  /** Breakpoints per group, rising, work units/s; without 0. */
  readonly loads: readonly (readonly number[])[];
  /** Per cell: steps shed (of the problem's) whose corners are on the grid; null = shedding is priced flat. */
  readonly shedSteps: readonly (readonly number[])[] | null;
  /** Per cell: numbers of the arcs offered. */
  readonly offered: readonly ReadonlySet<number>[];
  readonly start: Start;
}

/** The first grid is an engine's reach in so many parts; each pass's fine steps are `SHRINK` times smaller. */
const FIRST_PARTS = 8;
const SHRINK = 4;
/** No smaller than in this pass, 1/2048 of the reach: a finer grid would cost digits. From the next on, all arcs are offered again. */
const FINEST_PASS = 4;
/** Fine steps to each side of the load found; `SHRINK` of them cover one step of the pass before. */
const WINDOW = 5;
/** Breakpoints closer than this part of the reach would make the programme's rows dependent. */
export const CLOSEST = 1e-5;
/** A breakpoint this near to 0 would have a coefficient of thousands beside those of 1. */
const LEAST = 2e-4;
/** Arcs offered per cell after the first pass, besides those in use: the bound, taken over all arcs, shows if one was missing. */
const OFFERED = 8;
/** Up to so many cells all corners of the shed price are on the grid; beyond, one in `COARSE_STEPS` and those near. */
const FEW_CELLS = 16;
const COARSE_STEPS = 5;

export function startGrid(fleet: LpFleet): Grid {
  const { problem } = fleet;
  const level = levelLoads(fleet);
  const capacity = fleet.groups.reduce((sum, group) => sum + group.reachWps, 0);
  const demand = problem.demandWps.reduce((sum, each) => sum + each, 0);
  // Even where there is room in all, a part of the fleet may have to shed: the first pass shows that.
  const sheds = demand > capacity ? cheapestSheds(problem, demand - capacity) : null;
  const shedSteps = (cell: number) => sheds?.[cell] ?? 0;
  const servedWps = (cell: number) => problem.demandWps[cell]! * (1 - shedSteps(cell) / Math.max(1, problem.shedSteps));
  return {
    pass: 0,
    loads: fleet.groups.map((group, index) => coarseLoads(fleet, group, [level.loadWps[index]!])),
    shedSteps: sheds === null ? null : corners(problem, shedSteps),
    offered: allArcs(fleet),
    start: { loadWps: level.loadWps, order: fillOrder(fleet, level, servedWps), shedSteps },
  };
}

export function refineGrid(fleet: LpFleet, grid: Grid, found: Found): Grid {
  const { problem } = fleet;
  const pass = grid.pass + 1;
  const shedSteps = (cell: number) => {
    const demand = problem.demandWps[cell]!;
    return demand > 0 ? (found.flows.shedWps[cell]! / demand) * problem.shedSteps : 0;
  };
  const shedding = grid.shedSteps !== null || found.flows.shedWps.some((shed) => shed > 0);
  return {
    pass,
    loads: fleet.groups.map((group, index) => {
      const step = group.reachWps / (FIRST_PARTS * SHRINK ** Math.min(pass, FINEST_PASS));
      const at = found.groupLoadWps[index]!;
      return coarseLoads(
        fleet,
        group,
        Array.from({ length: 2 * WINDOW + 1 }, (_, i) => at + (i - WINDOW) * step),
      );
    }),
    shedSteps: shedding ? corners(problem, shedSteps) : null,
    offered: pass > FINEST_PASS ? allArcs(fleet) : offerArcs(fleet, found),
    start: { loadWps: found.groupLoadWps, order: leafOrder(fleet, found), shedSteps },
  };
}

function coarseLoads({ problem }: LpFleet, { engine, engines, reachWps }: Group, more: readonly number[]): number[] {
  const kinks = kinksOf(problem.curves, engine).map((load) => load * engines.length);
  const even = Array.from({ length: FIRST_PARTS }, (_, part) => (reachWps * (part + 1)) / FIRST_PARTS);
  const inside = [...kinks, ...even, ...more].filter((load) => load > LEAST * reachWps && load < reachWps);
  const kept: number[] = [];
  for (const load of inside.sort((a, b) => a - b)) if (load - (kept.at(-1) ?? 0) > CLOSEST * reachWps) kept.push(load);
  while (kept.length > 0 && reachWps - kept.at(-1)! <= CLOSEST * reachWps) kept.pop();
  if (reachWps > 0) kept.push(reachWps);
  return kept;
}

function corners(problem: Problem, shedSteps: (cell: number) => number): readonly (readonly number[])[] | null {
  const { shedSteps: steps, shedStepMs } = problem;
  if (steps <= 0 || shedStepMs === 0) return null;
  const all = Array.from({ length: steps }, (_, step) => step + 1);
  return Array.from(problem.demandWps, (_, cell) => {
    if (problem.demandWps.length <= FEW_CELLS) return all;
    const at = shedSteps(cell);
    return all.filter((step) => step % COARSE_STEPS === 0 || Math.abs(step - at) < 2);
  });
}

function allArcs(fleet: LpFleet): ReadonlySet<number>[] {
  return fleet.arcs.map((arcs) => new Set(arcs.keys()));
}

/** The cheapest arcs of each cell by the prices found, and those in use. */
function offerArcs(fleet: LpFleet, { groupPriceMs, folded }: Found): ReadonlySet<number>[] {
  const priceMs = fleet.groups.map((group, index) => atLeastIdle(fleet, group, groupPriceMs[index]!));
  return fleet.arcs.map((arcs, cell) => {
    const priced = arcs.map(({ group, costMs, moveMs }, at) => ({ at, ms: costMs + moveMs + priceMs[group]! }));
    priced.sort((a, b) => a.ms - b.ms || a.at - b.at);
    const used = arcs.flatMap(({ heldWps }, at) => (folded[cell]![at]! > 0 || heldWps > 0 ? [at] : []));
    return new Set([...priced.slice(0, OFFERED).map(({ at }) => at), ...used]);
  });
}

import { costAt } from "./engine-cost.ts";
import { type Found, type Group, type LpFleet, unfold } from "./lp-fleet.ts";
import { CLOSEST, type Grid } from "./lp-grid.ts";
import { LinearProgram } from "./lp-model.ts";
import type { Problem } from "./problem.ts";
import { shedCost, shedPrice } from "./shed.ts";

/** Total demand of the scaled programme, and its unit of cost: both keep numbers far above the solver's 1e-9. */
const FLOW_TOTAL = 1e4;
const COST_SCALE = 1e-3;

/** What the solver's digits may add to a full engine, as a part of its capacity. */
const OVERFULL = 1e-8;

/**
 * The solver's ratio test passes over ratios below its precision, which on ties can cost it all its digits: then the
 * programme is tried with another precision, and from nothing.
 */
const ATTEMPTS = [
  { isStarted: true, precision: 1e-9 },
  { isStarted: true, precision: 1e-11 },
  { isStarted: false, precision: 1e-9 },
  { isStarted: false, precision: 1e-11 },
  { isStarted: true, precision: 1e-7 },
] as const;

/** One pass: the programme on this grid. Null when no attempt kept its digits. */
export function solvePass(fleet: LpFleet, grid: Grid): Found | null {
  for (const attempt of ATTEMPTS) {
    const found = solveFrom(fleet, grid, attempt);
    const isSound = found?.groupLoadWps.every((load, index) => {
      const { engines, capacityWps } = fleet.groups[index]!;
      return load <= capacityWps * engines.length * (1 + OVERFULL);
    });
    if (found !== null && isSound === true) return found;
  }
  return null;
}

/**
 * What not serving costs, p_k·s_k, is written as a gain of serving, so that serving nothing is a start. Null when the
 * solver found no bounded optimum.
 */
function solveFrom(fleet: LpFleet, grid: Grid, attempt: (typeof ATTEMPTS)[number]): Found | null {
  const { problem } = fleet;
  const total = problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  const flowScale = total > 0 ? FLOW_TOTAL / total : 1;
  const program = new LinearProgram(attempt.precision);
  const engines = fleet.groups.map((group, index) =>
    addEngine(program, problem.curves, group, grid.loads[index]!, flowScale),
  );
  const cells = fleet.arcs.map((arcs, cell) => {
    const demand = problem.demandWps[cell]!;
    if (demand === 0) return { flows: arcs.map(() => []), sheds: [] };
    const row = program.addRow(demand * flowScale);
    const corners = grid.shedSteps?.[cell];
    const sheds = corners === undefined ? [] : addSheds(program, problem, cell, row, corners, flowScale);
    // What is neither served nor in a shed's step costs the price of the last step, or the one there is.
    const worstMs = shedPrice(problem, cell, corners === undefined ? 0 : 1);
    const flows = arcs.map(({ group, costMs, heldWps, moveMs }, at): number[] => {
      if (!grid.offered[cell]!.has(at)) return [];
      const rows = [[row, 1] as const, [engines[group]!.row, 1] as const];
      const moved = program.addVariable((costMs + moveMs - worstMs) * COST_SCALE, rows);
      if (moveMs === 0 || heldWps === 0) return [moved];
      const held = [program.addRow(heldWps * flowScale), 1] as const;
      return [program.addVariable((costMs - worstMs) * COST_SCALE, [...rows, held]), moved];
    });
    return { flows, sheds };
  });

  // The start: each engine raised to where it is expected, what is shed, then the flows in their order.
  const first = engines.flatMap(({ chords }, group) => {
    const load = grid.start.loadWps[group]!;
    const at = grid.loads[group]!.findIndex((each) => each >= load * (1 - CLOSEST));
    return load > 0 && at >= 0 ? [chords[at]!] : [];
  });
  for (const [cell, { sheds }] of cells.entries()) {
    const at = grid.shedSteps?.[cell]?.findLastIndex((step) => step <= grid.start.shedSteps(cell) + 1e-6) ?? -1;
    if (sheds[at] !== undefined) first.push(sheds[at]);
  }
  for (const { cell, at } of grid.start.order) first.push(...cells[cell]!.flows[at]!);

  const answer = program.solve(attempt.isStarted ? first : []);
  if (answer === null) return null;
  const sums = cells.map(({ flows }) =>
    flows.map((parts) => parts.reduce((sum, part) => sum + answer.values[part]! / flowScale, 0)),
  );
  return unfold(
    fleet,
    sums,
    Float64Array.from(engines, ({ row }) => answer.prices[row]! / COST_SCALE),
  );
}

/** The chords of a group's φ: rows of its load and of the mix's sum, and for each breakpoint its part λ of the mix, times the reach. */
function addEngine(
  program: LinearProgram,
  curves: Problem["curves"],
  group: Group,
  loads: readonly number[],
  flowScale: number,
) {
  const row = program.addRow(0);
  const convexity = program.addRow(group.reachWps * flowScale);
  const many = group.engines.length;
  const chords = loads.map((load) =>
    program.addVariable(((many * costAt(curves, group.engine, load / many)) / group.reachWps) * COST_SCALE, [
      [row, -load / group.reachWps],
      [convexity, 1],
    ]),
  );
  return { row, chords };
}

/** P_k between the corners of its steps, as chords like an engine's. */
function addSheds(
  program: LinearProgram,
  problem: Problem,
  cell: number,
  row: number,
  corners: readonly number[],
  flowScale: number,
): number[] {
  const demand = problem.demandWps[cell]!;
  const limit = program.addRow(demand * flowScale);
  return corners.map((step) => {
    const part = step / problem.shedSteps;
    const savedMs = part * shedPrice(problem, cell, 1) - shedCost(problem, cell, demand * part) / demand;
    return program.addVariable(-savedMs * COST_SCALE, [
      [row, part],
      [limit, 1],
    ]);
  });
}

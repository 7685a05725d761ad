import { costAt } from "./engine-cost.ts";
import { type Found, type Group, type LpFleet, unfold } from "./lp-fleet.ts";
import { CLOSEST, type Grid } from "./lp-grid.ts";
import { LinearProgram } from "./lp-model.ts";
import { shedCost } from "./shed.ts";

/** Total demand of the scaled programme, and its unit of cost: both keep numbers far above the solver's 1e-9. */
const FLOW_TOTAL = 1e4;
const COST_SCALE = 1e-3;

/**
 * One pass: the programme on this grid. The cost of not serving, p_k·s_k, is written as a gain of serving, so that
 * serving nothing is a start. Null when the solver lost its digits.
 */
export function solvePass(fleet: LpFleet, grid: Grid): Found | null {
  const { problem } = fleet;
  const total = problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  const flowScale = total > 0 ? FLOW_TOTAL / total : 1;
  const program = new LinearProgram();
  const engines = fleet.groups.map((group, index) => addEngine(program, group, grid.loads[index]!, flowScale));
  const cells = fleet.arcs.map((arcs, cell) => {
    const demand = problem.demandWps[cell]!;
    const row = program.addRow(demand * flowScale);
    const stepped =
      grid.served === null || demand === 0 ? null : addServed(program, fleet, cell, grid.served[cell]!, flowScale);
    const flows = arcs.map(({ group, costMs }, at) => {
      if (demand === 0 || !grid.offered[cell]!.has(at)) return -1;
      const terms: [number, number][] = [
        [row, 1],
        [engines[group]!.row, 1],
      ];
      if (stepped !== null) terms.push([stepped.row, -1]);
      return program.addVariable((costMs - problem.shedMs[cell]!) * COST_SCALE, terms);
    });
    return { flows, corners: stepped?.corners ?? [] };
  });

  // The start: each engine raised to where it is expected, then the flows in their order, then what was served.
  const first = engines.flatMap(({ chords }, group) => {
    const load = grid.start.loadWps[group]!;
    const at = grid.loads[group]!.findIndex((each) => each >= load * (1 - CLOSEST));
    return load > 0 && at >= 0 ? [chords[at]!] : [];
  });
  for (const { cell, at } of grid.start.order) {
    const variable = cells[cell]!.flows[at]!;
    if (variable >= 0) first.push(variable);
  }
  for (const [cell, { corners }] of cells.entries()) {
    const at = grid.served?.[cell]?.findIndex((step) => step >= grid.start.servedPart(cell) * problem.shedSteps) ?? -1;
    if (corners[at] !== undefined) first.push(corners[at]);
  }

  const answer = program.solve(first);
  if (answer === null) return null;
  const sums = cells.map(({ flows }) => flows.map((at) => (at < 0 ? 0 : answer.values[at]! / flowScale)));
  return unfold(
    fleet,
    sums,
    Float64Array.from(engines, ({ row }) => answer.prices[row]! / COST_SCALE),
  );
}

/** The chords of a group's φ: rows of its load and of the mix's sum, and a variable for each breakpoint. */
function addEngine(program: LinearProgram, group: Group, loads: readonly number[], flowScale: number) {
  const row = program.addRow(0);
  const convexity = program.addRow(group.reachWps * flowScale);
  const many = group.engines.length;
  const chords = loads.map((load) =>
    program.addVariable(((many * costAt(group.cost, load / many)) / load) * COST_SCALE, [
      [row, -1],
      [convexity, group.reachWps / load],
    ]),
  );
  return { row, chords };
}

/**
 * What serving saves beyond the flat price, in steps: X(d) − X(d − r) for the demand served r, X(s) = P_k(s) − p_k·s,
 * between the corners of P_k.
 */
function addServed(
  program: LinearProgram,
  { problem }: LpFleet,
  cell: number,
  served: readonly number[],
  flowScale: number,
) {
  const demand = problem.demandWps[cell]!;
  const row = program.addRow(0);
  const limit = program.addRow(demand * flowScale);
  const extra = (shed: number) => shedCost(problem, cell, shed) - problem.shedMs[cell]! * shed;
  const corners = served.map((step) => {
    const part = step / problem.shedSteps;
    const savedMs = (extra(demand) - extra(demand * (1 - part))) / (demand * part);
    return program.addVariable(-savedMs * COST_SCALE, [
      [row, 1],
      [limit, 1 / part],
    ]);
  });
  return { row, corners };
}

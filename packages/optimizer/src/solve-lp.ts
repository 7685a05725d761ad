import { engineCosts, type Flows, lowerBound, objective } from "./bound.ts";
import { checkProblem } from "./check-problem.ts";
import { conjugate, costAt, type EngineCost, marginalAt } from "./engine-cost.ts";
import { groupEqualEngines } from "./equal-engines.ts";
import { LinearProgram } from "./lp-model.ts";
import type { Problem, Solution, SolveStatus } from "./problem.ts";
import { shedCost } from "./shed.ts";

/**
 * The problem as a linear programme. Each φ_e is replaced by chords between breakpoints b_i of its load,
 *
 *     φ_e(y) ≈ min Σ_i φ(b_i)/b_i·v_i   subject to   Σ_i v_i = y,   Σ_i v_i/b_i ≤ 1,   v ≥ 0
 *
 * (convexity makes neighbours the cheapest mix), and P_k likewise over the demand served. Kinks of φ are always
 * breakpoints; each pass puts a finer grid around the loads that the last one found, so the chords' error falls by 16 a
 * pass. The programme's own prices of the engines' rows give the lower bound. No warm start: each solve starts afresh.
 */
export function solveLp(problem: Problem, budget: LpBudget = {}): Solution {
  const wrong = checkProblem(problem);
  if (wrong !== null) return noSolution(problem, wrong.status, wrong.message);
  const nowMs = budget.nowMs ?? (() => performance.now());
  const startMs = nowMs();
  const deadlineMs = budget.deadlineMs ?? Number.POSITIVE_INFINITY;
  const fleet = foldFleet(problem);
  let best: Solution | null = null;
  let status: SolveStatus = "solved";
  let grid = startGrid(fleet);
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const passStartMs = nowMs();
    const found = solvePass(fleet, grid);
    if (found === null) {
      if (best === null) return noSolution(problem, "invalid", "the linear programme lost its digits: no pass ended");
      break;
    }
    best = better(best, solutionOf(fleet, found));
    if (best.objectiveMs - best.lowerBoundMs <= ENOUGH * Math.max(best.lowerBoundMs, TINY_MS)) break;
    if (pass + 1 === MAX_PASSES) break;
    const endMs = nowMs();
    if (endMs - startMs + (endMs - passStartMs) > deadlineMs) {
      status = "capped";
      break;
    }
    grid = refineGrid(fleet, grid, found);
  }
  return { ...best!, status };
}

export interface LpBudget {
  /** Wall time; no further pass is begun that would likely end after it. */
  readonly deadlineMs?: number | null;
  readonly nowMs?: () => number;
}

/** Step of the grid in pass p: 1/8, 1/32, … 1/2048 of an engine's reach. */
const MAX_PASSES = 5;
const FIRST_PARTS = 8;
const SHRINK = 4;
/** Steps of the fine grid to each side; SHRINK of them cover one step of the pass before. */
const WINDOW = 5;
/** Relative gap at which another pass is not worth its time. */
const ENOUGH = 1e-7;
const TINY_MS = 1e-9;

/** The problem with equal engines folded into one, and the scales that keep the programme's numbers near 1. */
interface Fleet {
  readonly problem: Problem;
  readonly costs: readonly EngineCost[];
  readonly groups: readonly Group[];
  /** Cell → its arcs to groups with capacity. */
  readonly arcs: readonly (readonly FoldedArc[])[];
  readonly flowScale: number;
}

interface Group {
  readonly engines: readonly number[];
  readonly cost: EngineCost;
  /** The most that can arrive here: capacity or eligible demand, work units/s of the whole group. */
  readonly reachWps: number;
}

interface FoldedArc {
  readonly group: number;
  readonly costMs: number;
  /** Arcs of the problem that this one stands for. */
  readonly arcs: readonly number[];
}

interface Grid {
  readonly pass: number;
  /** Per group, rising, work units/s; without 0. */
  readonly loads: readonly (readonly number[])[];
  /** Per cell: steps served (of `shedSteps`) whose corners are on the grid; null = shedding is priced flat. */
  readonly served: readonly (readonly number[])[] | null;
  /** Per cell, the arcs worth offering; null = all. */
  readonly offered: readonly ReadonlySet<number>[] | null;
  readonly start: Start;
}

/** Where the simplex method starts: a basis that is feasible whatever it is, and the better the fewer pivots follow. */
interface Start {
  /** Per group. */
  readonly loadWps: ArrayLike<number>;
  /** Arcs in the order in which they are filled, each as far as demand and load allow. */
  readonly order: readonly { readonly cell: number; readonly at: number }[];
}

interface Found {
  readonly flows: Flows;
  /** Per cell and folded arc, and per group; work units/s. */
  readonly folded: readonly (readonly number[])[];
  readonly groupLoadWps: Float64Array;
  /** Per group, ms per unit of work. */
  readonly groupPriceMs: Float64Array;
}

function foldFleet(problem: Problem): Fleet {
  const costs = engineCosts(problem);
  const groups: { engines: number[]; cost: EngineCost; reachWps: number }[] = [];
  const groupOf = new Map<number, number>();
  for (const engines of groupEqualEngines(problem)) {
    const cost = costs[engines[0]!]!;
    if (cost.capacityWps === 0) continue;
    for (const engine of engines) groupOf.set(engine, groups.length);
    groups.push({ engines, cost, reachWps: 0 });
  }
  const arcs = Array.from(problem.demandWps, (demand, cell) => {
    const byGroup = new Map<number, number[]>();
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const group = groupOf.get(problem.arcEngine[arc]!);
      if (group === undefined) continue;
      const list = byGroup.get(group);
      if (list === undefined) byGroup.set(group, [arc]);
      else list.push(arc);
    }
    return Array.from(byGroup, ([group, list]): FoldedArc => {
      groups[group]!.reachWps += demand;
      return { group, costMs: problem.arcCostMs[list[0]!]!, arcs: list };
    });
  });
  for (const group of groups)
    group.reachWps = Math.min(REACH * group.reachWps, group.cost.capacityWps * group.engines.length);
  const total = problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  return { problem, costs, groups, arcs, flowScale: total > 0 ? FLOW_TOTAL / total : 1 };
}

/** Past the demand, so that where it ends is no kink of the programme: its price would pass for that of the capacity. */
const REACH = 1.5;

/** Total demand of the scaled programme, and its unit of cost: both keep numbers far above the solver's 1e-9. */
const FLOW_TOTAL = 1e4;
const COST_SCALE = 1e-3;

function solvePass(fleet: Fleet, grid: Grid): Found | null {
  const { problem, flowScale } = fleet;
  const program = new LinearProgram();
  const engines = fleet.groups.map((group, index) => addEngine(program, fleet, group, grid.loads[index]!));
  const cells = fleet.arcs.map((arcs, cell) => {
    const demand = problem.demandWps[cell]!;
    const row = program.addRow(demand * flowScale);
    const stepped = grid.served === null ? null : addServed(program, fleet, cell, grid.served[cell]!);
    const flows = arcs.map(({ group, costMs }, at) => {
      if (demand === 0 || (grid.offered !== null && !grid.offered[cell]!.has(at))) return -1;
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
    const at = grid.loads[group]!.findIndex((load) => load >= grid.start.loadWps[group]! * (1 - CLOSEST));
    return grid.start.loadWps[group]! > 0 && at >= 0 ? [chords[at]!] : [];
  });
  for (const { cell, at } of grid.start.order) if (cells[cell]!.flows[at]! >= 0) first.push(cells[cell]!.flows[at]!);
  for (const { corners } of cells) if (corners.length > 0) first.push(corners.at(-1)!);

  const answer = program.solve(first);
  if (answer === null) return null;
  const folded = cells.map(({ flows }) => flows.map((at) => (at < 0 ? 0 : answer.values[at]! / flowScale)));
  const priceMs = Float64Array.from(engines, ({ row }) => answer.prices[row]! / COST_SCALE);
  return unfold(fleet, folded, priceMs);
}

/** The chords of a group's φ: rows of its load and of the mix's sum, and a variable for each breakpoint. */
function addEngine(program: LinearProgram, fleet: Fleet, group: Group, loads: readonly number[]) {
  const row = program.addRow(0);
  const convexity = program.addRow(group.reachWps * fleet.flowScale);
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
function addServed(program: LinearProgram, fleet: Fleet, cell: number, served: readonly number[]) {
  const { problem, flowScale } = fleet;
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

/** Flows of the folded programme to flows of the problem that conserve demand exactly. */
function unfold(fleet: Fleet, sums: readonly number[][], groupPriceMs: Float64Array): Found {
  const { problem } = fleet;
  const flowWps = new Float64Array(problem.arcEngine.length);
  const shedWps = new Float64Array(problem.demandWps.length);
  const loadWps = new Float64Array(problem.curves.capacityWps.length);
  const groupLoadWps = new Float64Array(fleet.groups.length);
  const folded: number[][] = sums.map(() => []);
  for (const [cell, arcs] of fleet.arcs.entries()) {
    const demand = problem.demandWps[cell]!;
    const sum = sums[cell]!.reduce((total, flow) => total + flow, 0);
    // What the programme rounds away is neither a shed nor an overflow.
    const whole = sum > 0 && Math.abs(sum - demand) <= ROUNDING * (demand + 1 / fleet.flowScale);
    const scale = sum > demand || whole ? demand / sum : 1;
    shedWps[cell] = whole ? 0 : Math.max(0, demand - sum * scale);
    for (const [at, { group, arcs: list }] of arcs.entries()) {
      const flow = sums[cell]![at]! * scale;
      folded[cell]!.push(flow);
      groupLoadWps[group]! += flow;
      for (const arc of list) {
        flowWps[arc] = flow / list.length;
        loadWps[problem.arcEngine[arc]!]! += flow / list.length;
      }
    }
  }
  return { flows: { flowWps, shedWps, loadWps }, folded, groupLoadWps, groupPriceMs };
}

const ROUNDING = 1e-9;

function solutionOf(fleet: Fleet, { flows, groupPriceMs }: Found): Solution {
  const raised = new Float64Array(fleet.costs.length);
  for (const [index, group] of fleet.groups.entries())
    for (const engine of group.engines) raised[engine] = atLeastIdle(group, groupPriceMs[index]!);
  return {
    status: "solved",
    message: "",
    ...flows,
    priceMs: raised,
    objectiveMs: objective(fleet.problem, flows, fleet.costs),
    lowerBoundMs: lowerBound(fleet.problem, raised, fleet.costs).lowerBoundMs,
  };
}

/** An idle engine's row has no price of its own; up to its first marginal a higher one only helps the bound. */
function atLeastIdle(group: Group, priceMs: number): number {
  return Math.max(priceMs, group.cost.pieces[0]!.slopeMs);
}

/** The cheaper flows with the higher bound: each holds whichever pass it came from. */
function better(best: Solution | null, next: Solution): Solution {
  if (best === null) return next;
  const flows = next.objectiveMs <= best.objectiveMs ? next : best;
  const bound = next.lowerBoundMs >= best.lowerBoundMs ? next : best;
  return { ...flows, priceMs: bound.priceMs, lowerBoundMs: bound.lowerBoundMs };
}

function startGrid(fleet: Fleet): Grid {
  const level = levelLoads(fleet);
  const loads = fleet.groups.map((group, index) => coarseLoads(group, [level[index]!]));
  return { pass: 0, loads, served: null, offered: null, start: { loadWps: level, order: fillOrder(fleet, level) } };
}

/** Loads at which every group has the same marginal and the fleet takes its demand: near the optimum where costs of distance are small. */
function levelLoads(fleet: Fleet): Float64Array {
  const total = fleet.problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  const at = (priceMs: number) =>
    Float64Array.from(fleet.groups, ({ cost, engines, reachWps }) =>
      Math.min(conjugate(cost, priceMs).loadWps * engines.length, reachWps),
    );
  let [low, high] = [0, fleet.problem.shedMs.reduce((most, price) => Math.max(most, price), 0)];
  for (let halving = 0; halving < 60; halving++) {
    const middle = (low + high) / 2;
    if (at(middle).reduce((sum, load) => sum + load, 0) < total) low = middle;
    else high = middle;
  }
  return at(high);
}

/** Cells by falling demand, each to its cheapest groups that have load left. */
function fillOrder(fleet: Fleet, level: Float64Array): Start["order"] {
  const left = Float64Array.from(level);
  const marginal = fleet.groups.map(({ cost, engines }, group) => marginalAt(cost, level[group]! / engines.length));
  const cells = Array.from(fleet.problem.demandWps, (demand, cell) => ({ demand, cell }));
  cells.sort((a, b) => b.demand - a.demand || a.cell - b.cell);
  return cells.flatMap(({ demand, cell }) => {
    const arcs = fleet.arcs[cell]!.map(({ group, costMs }, at) => ({ at, group, ms: costMs + marginal[group]! }));
    arcs.sort((a, b) => a.ms - b.ms || a.at - b.at);
    const order: { cell: number; at: number }[] = [];
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
function leafOrder(fleet: Fleet, folded: readonly (readonly number[])[]): Start["order"] {
  const arcs = folded.flatMap((flows, cell) =>
    flows.flatMap((flow, at) => (flow > 0 ? [{ cell, at, group: fleet.arcs[cell]![at]!.group }] : [])),
  );
  const ofCell = new Map<number, number>();
  const ofGroup = new Map<number, number>();
  for (const { cell, group } of arcs) {
    ofCell.set(cell, (ofCell.get(cell) ?? 0) + 1);
    ofGroup.set(group, (ofGroup.get(group) ?? 0) + 1);
  }
  const order: { cell: number; at: number }[] = [];
  let rest = arcs;
  while (rest.length > 0) {
    const next: typeof rest = [];
    for (const arc of rest) {
      // On a cycle (sums that rounding split) no arc is a leaf: then they go as they stand.
      if (ofCell.get(arc.cell) !== 1 && ofGroup.get(arc.group) !== 1) {
        next.push(arc);
        continue;
      }
      order.push({ cell: arc.cell, at: arc.at });
      ofCell.set(arc.cell, ofCell.get(arc.cell)! - 1);
      ofGroup.set(arc.group, ofGroup.get(arc.group)! - 1);
    }
    if (next.length === rest.length) return [...order, ...next.map(({ cell, at }) => ({ cell, at }))];
    rest = next;
  }
  return order;
}

function coarseLoads({ cost, engines, reachWps }: Group, more: readonly number[]): number[] {
  const kinks = cost.pieces.map((piece) => piece.fromWps * engines.length);
  const even = Array.from({ length: FIRST_PARTS }, (_, part) => (reachWps * (part + 1)) / FIRST_PARTS);
  return rising([...kinks, ...even, ...more], reachWps);
}

function refineGrid(fleet: Fleet, grid: Grid, found: Found): Grid {
  const { problem } = fleet;
  const pass = grid.pass + 1;
  const loads = fleet.groups.map((group, index) => {
    const at = found.groupLoadWps[index]!;
    const step = group.reachWps / (FIRST_PARTS * SHRINK ** pass);
    const fine = Array.from({ length: 2 * WINDOW + 1 }, (_, i) => at + (i - WINDOW) * step);
    return coarseLoads(group, fine);
  });
  return {
    pass,
    loads,
    served: refineServed(problem, grid, found),
    offered: offerArcs(fleet, found),
    start: { loadWps: found.groupLoadWps, order: leafOrder(fleet, found.folded) },
  };
}

function refineServed(problem: Problem, grid: Grid, found: Found): readonly (readonly number[])[] | null {
  const { shedSteps: steps, shedStepMs } = problem;
  const shedding = found.flows.shedWps.some((shed) => shed > 0);
  if (steps <= 0 || shedStepMs === 0 || (grid.served === null && !shedding)) return null;
  const all = Array.from({ length: steps }, (_, step) => step + 1);
  return Array.from(problem.demandWps, (demand, cell) => {
    if (problem.demandWps.length <= FEW_CELLS || demand === 0) return all;
    const at = (1 - found.flows.shedWps[cell]! / demand) * steps;
    return all.filter((step) => step % COARSE_STEPS === 0 || step === steps || Math.abs(step - at) < 2);
  });
}

const FEW_CELLS = 16;
const COARSE_STEPS = 5;

/** After the first pass only each cell's likeliest arcs are offered: the bound, taken over all arcs, shows if one lacked. */
function offerArcs(fleet: Fleet, found: Found): ReadonlySet<number>[] {
  return fleet.arcs.map((arcs, cell) => {
    const priced = arcs.map(({ group, costMs }, at) => ({
      at,
      ms: costMs + atLeastIdle(fleet.groups[group]!, found.groupPriceMs[group]!),
    }));
    priced.sort((a, b) => a.ms - b.ms || a.at - b.at);
    const used = arcs.flatMap((_, at) => (found.folded[cell]![at]! > 0 ? [at] : []));
    return new Set([...priced.slice(0, OFFERED).map(({ at }) => at), ...used]);
  });
}

const OFFERED = 8;

/** Sorted, within (0, reach], and no two closer than a millionth: twins would make the programme's rows dependent. */
function rising(loads: readonly number[], reachWps: number): number[] {
  const sorted = loads.filter((load) => load > CLOSEST * reachWps && load < reachWps).sort((a, b) => a - b);
  const kept: number[] = [];
  for (const load of sorted) if (load - (kept.at(-1) ?? 0) > CLOSEST * reachWps) kept.push(load);
  while (kept.length > 0 && reachWps - kept.at(-1)! <= CLOSEST * reachWps) kept.pop();
  if (reachWps > 0) kept.push(reachWps);
  return kept;
}

const CLOSEST = 1e-6;

function noSolution(problem: Problem, status: SolveStatus, message: string): Solution {
  return {
    status,
    message,
    flowWps: new Float64Array(problem.arcEngine.length),
    shedWps: new Float64Array(problem.demandWps.length),
    loadWps: new Float64Array(problem.curves.capacityWps.length),
    priceMs: new Float64Array(problem.curves.capacityWps.length),
    objectiveMs: 0,
    lowerBoundMs: 0,
  };
}

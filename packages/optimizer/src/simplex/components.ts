import { checkProblem } from "../check-problem.ts";
import { noSolution } from "../no-solution.ts";
import type { Problem, Solution } from "../problem.ts";
import { connectedParts } from "../shift-prices.ts";
import { carryWarm } from "./carry-warm.ts";
import type { Simplex, SimplexRun } from "./choose.ts";
import { checkChurn, refused, type SimplexSolution } from "./solve.ts";
import type { Warm } from "./warm.ts";

/**
 * A problem that falls into parts which no arc connects (models that share no engine) is solved part by part: each part
 * is smaller, which a simplex repays more than in proportion, and parts can be solved at the same time.
 */
export interface Component {
  readonly problem: Problem;
  /** The whole problem's numbers of the part's cells, engines and arcs, rising. */
  readonly cells: Uint32Array;
  readonly engines: Uint32Array;
  readonly arcs: Uint32Array;
}

/**
 * The independent parts of a problem that `checkProblem` accepts. Each has at least one cell, but for one that holds all
 * engines nobody may send to; cells without an arc come together in one part without engines.
 */
export function components(problem: Problem): Component[] {
  const parts = connectedParts(problem);
  const served = parts.filter(({ cells }) => cells.length > 0);
  if (served.length === 1 && parts.length === 1 && served[0]!.cells.length === problem.demandWps.length)
    return [whole(problem)];
  const idle = parts.filter(({ cells }) => cells.length === 0).flatMap(({ engines }) => engines);
  const alone: number[] = [];
  for (let cell = 0; cell < problem.demandWps.length; cell++)
    if (problem.arcStart[cell] === problem.arcStart[cell + 1]) alone.push(cell);
  const all = served.map(({ cells, engines }) => part(problem, cells, engines));
  // Those left over cost nothing to solve, and their sheds and prices must come from somewhere.
  if (idle.length > 0 || alone.length > 0)
    all.push(
      part(
        problem,
        alone,
        idle.sort((a, b) => a - b),
      ),
    );
  return all;
}

/**
 * Solves every part by `simplex`, one after the other, and joins what comes out. The deadline is for all of them; the
 * target gap is each part's, so that of the whole is no larger. `warm` is of the whole problem, as is what is left.
 */
export function solveByComponents(problem: Problem, simplex: Simplex, run: SimplexRun = {}): SimplexSolution {
  const wrong = checkProblem(problem) ?? checkChurn(problem);
  if (wrong !== null) return refused(problem, wrong);
  const parts = components(problem);
  const { deadlineMs, warm, ...rest } = run;
  const until = deadlineMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + deadlineMs;
  const solutions = parts.map((each) =>
    simplex.solve(each.problem, {
      ...rest,
      ...(deadlineMs === undefined ? {} : { deadlineMs: Math.max(0, until - performance.now()) }),
      ...(warm === undefined ? {} : { warm: warmOf(problem, each, warm) }),
    }),
  );
  return joinComponents(problem, parts, solutions);
}

/** What an earlier solve of the whole left, for one part. */
export function warmOf(problem: Problem, { cells, engines }: Component, warm: Warm): Warm {
  const isOther = warm.cells !== problem.demandWps.length || warm.engines !== problem.curves.capacityWps.length;
  return isOther ? warm : carryWarm(warm, Int32Array.from(cells), Int32Array.from(engines));
}

/** One solution of the whole from one of each part, by the simplex. */
export function joinComponents(
  problem: Problem,
  parts: readonly Component[],
  solutions: readonly SimplexSolution[],
): SimplexSolution {
  const solution = joinSolutions(problem, parts, solutions);
  const gap =
    (solution.objectiveMs - solution.lowerBoundMs) / Math.max(Math.abs(solution.lowerBoundMs), Number.MIN_VALUE);
  return {
    ...solution,
    warm: joinWarm(
      problem,
      parts,
      solutions.map(({ warm }) => warm),
    ),
    pivots: solutions.reduce((sum, { pivots }) => sum + pivots, 0),
    stages: solutions.reduce((most, { stages }) => Math.max(most, stages), 0),
    gapHistory: [gap],
  };
}

/**
 * Flows in their places, costs and bounds added. A part without an answer leaves the whole without one; a part that
 * stopped early leaves the whole so.
 */
export function joinSolutions(problem: Problem, parts: readonly Component[], solutions: readonly Solution[]): Solution {
  const whole = noSolution(problem, "solved", "");
  let { objectiveMs, lowerBoundMs, status, message } = whole;
  for (const [at, { cells, engines, arcs }] of parts.entries()) {
    const solution = solutions[at]!;
    place(solution.flowWps, arcs, whole.flowWps);
    place(solution.shedWps, cells, whole.shedWps);
    place(solution.loadWps, engines, whole.loadWps);
    place(solution.priceMs, engines, whole.priceMs);
    objectiveMs += solution.objectiveMs;
    lowerBoundMs += solution.lowerBoundMs;
    if (solution.status === "solved" || (status !== "solved" && solution.status === "capped")) continue;
    if (status !== "solved" && status !== "capped") continue;
    status = solution.status;
    message = `part ${at + 1} of ${parts.length}: ${solution.message}`;
  }
  return { ...whole, status, message, objectiveMs, lowerBoundMs };
}

/** What the solves of all parts left, as if it were of the whole. */
export function joinWarm(problem: Problem, parts: readonly Component[], warms: readonly Warm[]): Warm {
  const all = { cells: problem.demandWps.length, engines: problem.curves.capacityWps.length };
  const root = all.cells + all.engines;
  const parent = new Int32Array(root).fill(root);
  const [price, part] = [new Float64Array(root), new Float64Array(root)];
  const load = new Float64Array(all.engines);
  const heldCell: number[] = [];
  const heldEngine: number[] = [];
  for (const [at, { cells, engines }] of parts.entries()) {
    const warm = warms[at]!;
    const nodes = Int32Array.from([...cells, ...engines.map((engine) => all.cells + engine), root]);
    for (let node = 0; node < warm.parent.length; node++) {
      parent[nodes[node]!] = nodes[warm.parent[node]!]!;
      price[nodes[node]!] = warm.price[node]!;
      part[nodes[node]!] = warm.part[node]!;
    }
    place(warm.load, engines, load);
    for (const [i, cell] of warm.heldCell.entries()) {
      heldCell.push(cells[cell]!);
      heldEngine.push(engines[warm.heldEngine[i]!]!);
    }
  }
  return {
    ...all,
    parent,
    price,
    part,
    load,
    heldCell: Uint32Array.from(heldCell),
    heldEngine: Uint32Array.from(heldEngine),
  };
}

function place(from: Float64Array, at: Uint32Array, to: Float64Array): void {
  for (let i = 0; i < at.length; i++) to[at[i]!] = from[i]!;
}

/** The problem as one part. */
export function whole(problem: Problem): Component {
  const numbers = (count: number) => Uint32Array.from({ length: count }, (_, at) => at);
  return {
    problem,
    cells: numbers(problem.demandWps.length),
    engines: numbers(problem.curves.capacityWps.length),
    arcs: numbers(problem.arcEngine.length),
  };
}

function part(problem: Problem, cellList: readonly number[], engineList: readonly number[]): Component {
  const { demandWps, arcStart, arcEngine, arcCostMs, curves, shedMs, churn } = problem;
  const cells = Uint32Array.from(cellList);
  const engines = Uint32Array.from(engineList);
  const starts = new Uint32Array(cells.length + 1);
  for (let at = 0; at < cells.length; at++)
    starts[at + 1] = starts[at]! + arcStart[cells[at]! + 1]! - arcStart[cells[at]!]!;
  const arcs = rangesOf(arcStart, cells, starts);
  const now = new Uint32Array(curves.capacityWps.length);
  for (let at = 0; at < engines.length; at++) now[engines[at]!] = at;
  const partEngine = new Uint32Array(arcs.length);
  for (let at = 0; at < arcs.length; at++) partEngine[at] = now[arcEngine[arcs[at]!]!]!;
  const churned = churn && { referenceWps: pick(churn.referenceWps, arcs), moveMs: pick(churn.moveMs, arcs) };
  return {
    problem: {
      ...problem,
      demandWps: pick(demandWps, cells),
      arcStart: starts,
      arcEngine: partEngine,
      arcCostMs: pick(arcCostMs, arcs),
      shedMs: pick(shedMs, cells),
      curves: partCurves(curves, engines),
      ...(churned === undefined ? {} : { churn: churned }),
    },
    cells,
    engines,
    arcs,
  };
}

function partCurves(curves: Problem["curves"], engines: Uint32Array): Problem["curves"] {
  const knotStart = new Uint32Array(engines.length + 1);
  for (let at = 0; at < engines.length; at++)
    knotStart[at + 1] = knotStart[at]! + curves.knotStart[engines[at]! + 1]! - curves.knotStart[engines[at]!]!;
  const knots = rangesOf(curves.knotStart, engines, knotStart);
  return {
    ...curves,
    capacityWps: pick(curves.capacityWps, engines),
    knotStart,
    knotRho: pick(curves.knotRho, knots),
    knotMs: pick(curves.knotMs, knots),
  };
}

/** The numbers in the ranges `start[r] .. start[r + 1]` of the rows named; row i's begin at `to[i]` of what comes back. */
function rangesOf(start: Uint32Array, rows: Uint32Array, to: Uint32Array): Uint32Array {
  const all = new Uint32Array(to[rows.length]!);
  for (let at = 0; at < rows.length; at++) {
    const first = start[rows[at]!]! - to[at]!;
    for (let i = to[at]!; i < to[at + 1]!; i++) all[i] = first + i;
  }
  return all;
}

function pick(column: Float64Array, numbers: Uint32Array): Float64Array {
  const picked = new Float64Array(numbers.length);
  for (let at = 0; at < numbers.length; at++) picked[at] = column[numbers[at]!]!;
  return picked;
}

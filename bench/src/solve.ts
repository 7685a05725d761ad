import { isDeepStrictEqual } from "node:util";
import { loadNative } from "@guidevane/native";
import {
  type BuiltProblem,
  buildProblem,
  createSimplex,
  type Plan,
  type Problem,
  plan,
  randomInstance,
  type Solution,
  solveLp,
} from "@guidevane/optimizer";
import type { BenchCase, BenchGroup } from "./case.ts";
import { planInputs } from "./inputs.ts";

const LARGE = [
  { cells: 128, engines: 72, seed: 1 },
  { cells: 600, engines: 240, seed: 2 },
];
const SIZES = [
  { clusters: 3, classes: 1, engines: 3 },
  { clusters: 4, classes: 2, engines: 12 },
  { clusters: 8, classes: 2, engines: 24 },
];

/** A gap above this would mean that a contestant is fast because it stops early. */
const GAP_ALLOWED = 1e-3;
/** A plan is judged by its rings' shares, which meet the weights to a slot, not exactly. */
const PLAN_GAP_ALLOWED = 1e-2;

/** From the fleet and its demand to weights: each solver alone, then the whole of `plan`; large fleets by the simplex only. */
export const solve: BenchGroup = {
  name: "solve",
  async open() {
    const load = loadNative();
    const kinds = load.binding === null ? (["ts"] as const) : (["ts", "native"] as const);
    const simplexes = kinds.map((kind) => createSimplex(kind));
    const cases: BenchCase[] = [];
    const truths = new Map<string, unknown>();
    const addSimplexes = (label: string, problem: Problem) => {
      for (const simplex of simplexes) {
        cases.push({
          name: `solve/simplex-${simplex.kind}/${label}`,
          batch: 1,
          question: `${label}, solved to the last bit by either twin`,
          run: () => simplex.solve(problem),
          answer: () => {
            const solution = simplex.solve(problem);
            expectRight(verdictOfSolution(problem, solution));
            return { pivots: solution.pivots, flowWps: solution.flowWps, shedWps: solution.shedWps };
          },
        });
      }
    };
    for (const size of SIZES) {
      const inputs = await planInputs(size);
      const problem = built(buildProblem(inputs));
      const label = `${size.clusters}-clusters/${size.classes}-classes/${size.engines}-engines`;
      cases.push({
        name: `solve/lp/${label}`,
        batch: 1,
        question: `${label}, solved`,
        run: () => solveLp(problem),
        answer: () => verdictOfSolution(problem, solveLp(problem)),
      });
      truths.set(`${label}, solved`, RIGHT);
      addSimplexes(label, problem);
      const wholePlan = () => plan(inputs, null, null, { deadlineMs: null });
      cases.push({
        name: `solve/plan/${label}`,
        batch: 1,
        question: `${label}, planned`,
        run: wholePlan,
        answer: () => verdictOfPlan(wholePlan()),
      });
      truths.set(`${label}, planned`, RIGHT);
    }
    for (const shape of LARGE) addSimplexes(`${shape.cells}-cells/${shape.engines}-engines`, randomInstance(shape));
    const missing = load.binding === null ? [`solve/simplex-native: ${load.reason}`] : [];
    return { cases, truths, missing, async close() {} };
  },
};

/** Weak duality is the judge: no solver can make both the cost and the bound look right. */
const RIGHT = { status: "solved", isFeasible: true, gapIsSmall: true };

function verdictOfSolution(problem: Problem, solution: Solution): unknown {
  const served = Array.from(problem.demandWps, (demand, cell) => {
    const [start, end] = [problem.arcStart[cell]!, problem.arcStart[cell + 1]!];
    const flow = solution.flowWps.subarray(start, end).reduce((sum, each) => sum + each, 0);
    return Math.abs(flow + solution.shedWps[cell]! - demand) <= 1e-6 * demand;
  });
  const fits = solution.loadWps.every((load, engine) => load <= problem.curves.capacityWps[engine]! * (1 + 1e-9));
  const gap = (solution.objectiveMs - solution.lowerBoundMs) / solution.objectiveMs;
  return {
    status: solution.status,
    isFeasible: fits && served.every((each) => each),
    gapIsSmall: gap >= -1e-9 && gap < GAP_ALLOWED,
  };
}

function expectRight(verdict: unknown): void {
  if (!isDeepStrictEqual(verdict, RIGHT)) throw new Error(`not a right solution: ${JSON.stringify(verdict)}`);
}

function verdictOfPlan({ status, publication }: Plan): unknown {
  const snapshots = [...(publication?.clusters.values() ?? [])];
  const sums = snapshots.flatMap(({ cells }) =>
    cells.map(({ weights }) => weights.reduce((sum, each) => sum + each, 0)),
  );
  return {
    status,
    isFeasible: sums.length > 0 && sums.every((sum) => Math.abs(sum - 1) < 1e-6),
    gapIsSmall: snapshots.every(({ certificate }) => certificate.gap >= -1e-9 && certificate.gap < PLAN_GAP_ALLOWED),
  };
}

function built(result: BuiltProblem): Problem {
  if (!result.ok) throw new Error(result.message);
  return result.problem;
}

import { isDeepStrictEqual } from "node:util";
import { createSolverThreads, type SolverThreads } from "@guidevane/control";
import { systemClock } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import {
  createSimplex,
  loseLargest,
  lowerBound,
  manyModels,
  noisyDemand,
  objective,
  type Problem,
  planParts,
  randomInstance,
  type Simplex,
  type SimplexRun,
  type Solved,
  shiftPrices,
  solveByComponents,
  solveLp,
  solvePlanParts,
} from "@guidevane/optimizer";
import type { BenchCase, BenchForm, BenchGroup, BenchRatio, Goal } from "./case.ts";
import { highsSolver } from "./highs.ts";
import { memoryOfOneSolve } from "./memory-of-one-solve.ts";
import { RIGHT, rightWithin, rightWithinOf } from "./right-solution.ts";

/**
 * The network simplex alone, on random fleets of a density of 20 %: from nothing and from the last tree, both twins, beside
 * HiGHS at an equal true gap and, on small fleets, the linear programme of `--solver lp`. The goals are those of the
 * project, for one core of the machine class that they were set on; elsewhere read the ratios.
 */
export const solver: BenchGroup = {
  name: "solver",
  async open(form) {
    const load = loadNative();
    const native = load.binding === null ? [] : [createSimplex("native")];
    const simplexes = [...native, createSimplex("ts")];
    const open: Opened = { cases: [], ratios: [], goals: new Map() };
    const missing = load.binding === null ? [`solver/native: ${load.reason}`] : [];
    for (const size of SIZES[form])
      for (const utilisation of UTILISATIONS[form]) addSize(open, simplexes, size, utilisation);
    addCertificate(open, form);
    const threads = addManyModels(open, simplexes, form);
    for (const shape of HIGHS_SIZES[form]) await addHighs(open, native[0] ?? simplexes[0]!, shape);
    if (form === "full") missing.push("solver/highs/1000x1000: 10 to 20 s and 450 MB a solve");
    for (const shape of LP_SIZES[form]) addLp(open, native[0] ?? simplexes[0]!, shape);
    const truths = new Map(open.cases.map(({ question }) => [question, RIGHT]));
    // A solve of 200,000 arcs takes a tenth of a second: three a round, so that each of three noises has its turn.
    const effort = { rounds: 3, caseMs: 20, warmupMs: 0, leastRuns: 3 };
    return { ...open, truths, missing, effort, figures: () => memory(simplexes, form), close: () => threads.close() };
  },
};

function memory(simplexes: readonly Simplex[], form: BenchForm): Record<string, number> {
  const { cells, engines } = MEMORY_SIZE[form];
  const problem = randomInstance({ cells, engines, seed: 1, utilisation: 0.95 });
  const names = simplexes.map(({ kind }) => [kind, `solver/memory/${kind}/${cells}x${engines}/MB`] as const);
  return Object.fromEntries(names.map(([kind, name]) => [name, memoryOfOneSolve(problem, kind) / 1e6]));
}

interface Size {
  readonly cells: number;
  readonly engines: number;
  readonly tasks: readonly (keyof typeof TASKS)[];
  /** Cold to 1e-4, cold to 1e-9, warm after 1 %, after 5 %, an engine lost; [must, aim], ms. */
  readonly goals: Partial<Record<keyof typeof TASKS, readonly [number, number]>>;
}

interface Shape {
  readonly cells: number;
  readonly engines: number;
  readonly utilisation: number;
}

interface Opened {
  readonly cases: BenchCase[];
  readonly ratios: BenchRatio[];
  readonly goals: Map<string, Goal>;
}

/** What is solved: the problem or what follows it, how close, and whether from the last tree. */
const TASKS = {
  "cold-1e-4": { next: (problem: Problem) => [problem], targetGap: 1e-4, isWarm: false },
  "cold-1e-9": { next: (problem: Problem) => [problem], targetGap: 1e-9, isWarm: false },
  "warm-1%-1e-4": { next: (problem: Problem) => noises(problem, 0.01), targetGap: 1e-4, isWarm: true },
  "warm-1%-1e-9": { next: (problem: Problem) => noises(problem, 0.01), targetGap: 1e-9, isWarm: true },
  "warm-5%-1e-9": { next: (problem: Problem) => noises(problem, 0.05), targetGap: 1e-9, isWarm: true },
  "engine-lost-1e-9": { next: (problem: Problem) => [loseLargest(problem)], targetGap: 1e-9, isWarm: true },
} as const;
const ALL_TASKS = Object.keys(TASKS) as (keyof typeof TASKS)[];

const SIZES: Readonly<Record<BenchForm, readonly Size[]>> = {
  short: [{ cells: 100, engines: 300, tasks: ["cold-1e-9", "warm-1%-1e-9"], goals: {} }],
  full: [
    {
      cells: 1000,
      engines: 1000,
      tasks: ALL_TASKS,
      goals: {
        "cold-1e-4": [150, 80],
        "cold-1e-9": [250, 150],
        "warm-1%-1e-4": [30, 10],
        "warm-1%-1e-9": [30, 10],
        "warm-5%-1e-9": [110, 50],
        "engine-lost-1e-9": [60, 25],
      },
    },
    {
      cells: 500,
      engines: 1000,
      tasks: ALL_TASKS,
      goals: { "cold-1e-9": [75, 40], "warm-1%-1e-4": [15, 6], "warm-1%-1e-9": [15, 6] },
    },
    {
      cells: 100,
      engines: 300,
      tasks: ALL_TASKS,
      goals: { "cold-1e-9": [6, 3], "warm-1%-1e-4": [1.5, 0.5], "warm-1%-1e-9": [1.5, 0.5] },
    },
    { cells: 200, engines: 5000, tasks: ["cold-1e-4", "cold-1e-9"], goals: { "cold-1e-9": [1200, 400] } },
  ],
};
const UTILISATIONS: Readonly<Record<BenchForm, readonly number[]>> = { short: [0.95], full: [0.5, 0.8, 0.95, 0.99] };
const HIGHS_SIZES: Readonly<Record<BenchForm, readonly Shape[]>> = {
  short: [{ cells: 30, engines: 60, utilisation: 0.8 }],
  full: [
    { cells: 100, engines: 300, utilisation: 0.8 },
    { cells: 100, engines: 300, utilisation: 0.95 },
    { cells: 500, engines: 1000, utilisation: 0.8 },
  ],
};
const LP_SIZES: Readonly<Record<BenchForm, readonly Shape[]>> = {
  short: [{ cells: 5, engines: 10, utilisation: 0.8 }],
  full: [
    { cells: 5, engines: 10, utilisation: 0.8 },
    { cells: 20, engines: 50, utilisation: 0.8 },
    { cells: 50, engines: 100, utilisation: 0.8 },
  ],
};
const MEMORY_SIZE = { short: { cells: 100, engines: 300 }, full: { cells: 1000, engines: 1000 } } as const;

/** Chords leave some 1e-5 to 1e-4; a gap above this would mean that a contestant is fast because it stops early. */
const CHORDS_GAP = 1e-3;
const LP_GAP = 1e-2;

function noises(problem: Problem, sigma: number): Problem[] {
  return [2, 3, 4].map((seed) => noisyDemand(problem, sigma, seed));
}

function addSize(open: Opened, simplexes: readonly Simplex[], size: Size, utilisation: number): void {
  const { cells, engines } = size;
  const problem = randomInstance({ cells, engines, seed: 1, utilisation });
  const warm = size.tasks.some((task) => TASKS[task].isWarm) ? simplexes[0]!.solve(problem).warm : undefined;
  for (const task of size.tasks) {
    const { next, targetGap, isWarm } = TASKS[task];
    const problems = next(problem);
    const run: SimplexRun = { targetGap, ...(isWarm && warm !== undefined ? { warm } : {}) };
    const label = `${task}/${cells}x${engines}/${utilisation * 100}%`;
    for (const simplex of simplexes) {
      let turn = 0;
      const solve = () => simplex.solve(problems[turn++ % problems.length]!, run);
      const name = `solver/${simplex.kind}/${label}`;
      const answer = () => rightWithin(targetGap, problems[0]!, simplex.solve(problems[0]!, run));
      open.cases.push({ name, batch: 1, question: label, run: solve, answer });
    }
    const goal = size.goals[task];
    if (goal !== undefined) open.goals.set(`solver/native/${label}`, { mustMs: goal[0], aimMs: goal[1] });
    addTwinRatio(open, simplexes, label);
  }
}

function addTwinRatio({ ratios }: Opened, simplexes: readonly Simplex[], label: string): void {
  if (simplexes.length < 2) return;
  ratios.push({
    name: `solver/ts÷native/${label}`,
    over: `solver/ts/${label}`,
    under: `solver/native/${label}`,
  });
}

/**
 * What gates a publication: the cost of the weights at hand and the bound that the prices at hand prove, as they are and,
 * for demand that fell by a fiftieth everywhere, with the shift that makes the best bound.
 */
function addCertificate(open: Opened, form: BenchForm): void {
  const cells = form === "full" ? 1000 : 100;
  const problem = randomInstance({ cells, engines: cells, seed: 1, utilisation: 0.95 });
  const solution = createSimplex("auto").solve(problem);
  const certify = (each: Problem, flows: typeof solution, priceMs: Float64Array) => ({
    ...flows,
    priceMs,
    objectiveMs: objective(each, flows),
    lowerBoundMs: lowerBound(each, priceMs).lowerBoundMs,
  });
  const less = (column: Float64Array) => column.map((value) => 0.98 * value);
  const next = { ...problem, demandWps: less(problem.demandWps) };
  const { flowWps, shedWps, loadWps } = solution;
  const kept = { ...solution, flowWps: less(flowWps), shedWps: less(shedWps), loadWps: less(loadWps) };
  const ways = [
    { way: "certificate", on: problem, gap: 1e-8, run: () => certify(problem, solution, solution.priceMs) },
    {
      way: "certificate-shifted",
      on: next,
      gap: 1e-2,
      run: () => certify(next, kept, shiftPrices(next, solution.priceMs)),
    },
  ];
  for (const { way, on, gap, run } of ways) {
    const name = `solver/${way}/ts/${problem.arcEngine.length}-arcs`;
    open.cases.push({ name, batch: 1, question: name, run, answer: () => rightWithin(gap, on, run()) });
    if (form === "full" && way === "certificate") open.goals.set(name, { mustMs: 1, aimMs: 0.3 });
  }
}

/** Models that share no engine: solved as one problem, as many one after the other, and in the solver's threads, two at a time. */
function addManyModels(open: Opened, simplexes: readonly Simplex[], form: BenchForm): SolverThreads {
  const models = form === "full" ? 50 : 15;
  const problem = manyModels({ models, clusters: 20, engines: 40, seed: 1 });
  const label = `${models}-models-of-20x40`;
  for (const simplex of simplexes) {
    const ways = { whole: () => simplex.solve(problem), "by-parts": () => solveByComponents(problem, simplex) };
    for (const [way, run] of Object.entries(ways)) {
      const name = `solver/${simplex.kind}/${way}/${label}`;
      open.cases.push({ name, batch: 1, question: label, run, answer: () => rightWithin(1e-9, problem, run()) });
    }
    open.ratios.push({
      name: `solver/whole÷by-parts/${simplex.kind}/${label}`,
      over: `solver/${simplex.kind}/whole/${label}`,
      under: `solver/${simplex.kind}/by-parts/${label}`,
    });
  }
  return addParallelParts(open, problem, label);
}

/** All that a plan's solve is (simplex, equal shares, lowest prices, bound): in this thread, and in two of the control plane's. */
function addParallelParts(open: Opened, problem: Problem, label: string): SolverThreads {
  const names = {
    cells: Array.from(problem.demandWps, (_, cell) => `cell ${cell}`),
    engines: Array.from(problem.curves.capacityWps, (_, engine) => `engine ${engine}`),
  };
  const parts = planParts(problem, names, null);
  const threads = createSolverThreads(systemClock, undefined, 2);
  const inThreads = async () => {
    const outcome = await threads.solveParts(parts, 60_000);
    if (!("result" in outcome)) throw new Error(outcome.message);
    return outcome.result;
  };
  const judge = (solved: readonly Solved[]) => {
    const verdicts = solved.map(({ solution }, at) => rightWithin(1e-9, parts[at]!.problem, solution));
    return verdicts.find((verdict) => !isDeepStrictEqual(verdict, RIGHT)) ?? RIGHT;
  };
  const [serial, parallel] = [`solver/plan-parts/1-thread/${label}`, `solver/plan-parts/2-threads/${label}`];
  const here = () => solvePlanParts(parts, "auto", { deadlineMs: null });
  open.cases.push(
    { name: serial, batch: 1, question: `${label}, planned`, run: here, answer: () => judge(here()) },
    {
      name: parallel,
      batch: 1,
      question: `${label}, planned`,
      run: inThreads,
      answer: async () => judge(await inThreads()),
    },
  );
  open.ratios.push({ name: `solver/1÷2-threads/${label}`, over: serial, under: parallel });
  return threads;
}

/** HiGHS on chords, and the simplex to the true gap that those leave. */
async function addHighs(open: Opened, simplex: Simplex, shape: Shape): Promise<void> {
  const problem = randomInstance({ ...shape, seed: 1 });
  const highs = await highsSolver(problem);
  const bound = simplex.solve(problem, { targetGap: 1e-11 }).lowerBoundMs;
  const first = highs.solveAndPrice();
  const targetGap = (first.objectiveMs - bound) / bound;
  const label = `${shape.cells}x${shape.engines}/${shape.utilisation * 100}%`;
  const question = `at the gap of HiGHS's chords, ${label}`;
  const [slow, fast] = [`solver/highs/${label}`, `solver/${simplex.kind}/equal-gap-to-highs/${label}`];
  open.cases.push({
    name: slow,
    batch: 1,
    leastRuns: 1,
    question,
    run: () => highs.solve(),
    answer: () => rightWithinOf(CHORDS_GAP, problem, { ...highs.solveAndPrice(), lowerBoundMs: bound }),
  });
  const solve = () => simplex.solve(problem, { targetGap });
  open.cases.push({
    name: fast,
    batch: 1,
    question,
    run: solve,
    answer: () => rightWithin(targetGap, problem, solve()),
  });
  open.ratios.push({ name: `solver/highs÷${simplex.kind}/${label}`, over: slow, under: fast });
}

/** The linear programme ends when its grid is fine; the simplex at the gap that this leaves. */
function addLp(open: Opened, simplex: Simplex, shape: Shape): void {
  const problem = randomInstance({ ...shape, seed: 1 });
  const bound = simplex.solve(problem, { targetGap: 1e-11 }).lowerBoundMs;
  const targetGap = Math.max(1e-9, (solveLp(problem).objectiveMs - bound) / bound);
  const label = `${shape.cells}x${shape.engines}/${shape.utilisation * 100}%`;
  const question = `at the gap of the linear programme, ${label}`;
  const [slow, fast] = [`solver/lp/${label}`, `solver/${simplex.kind}/equal-gap-to-lp/${label}`];
  const judge = (found: ReturnType<typeof solveLp>) =>
    rightWithinOf(LP_GAP, problem, { ...found, lowerBoundMs: bound });
  open.cases.push(
    { name: slow, batch: 1, question, run: () => solveLp(problem), answer: () => judge(solveLp(problem)) },
    {
      name: fast,
      batch: 1,
      question,
      run: () => simplex.solve(problem, { targetGap }),
      answer: () => rightWithin(targetGap, problem, simplex.solve(problem, { targetGap })),
    },
  );
  open.ratios.push({ name: `solver/lp÷${simplex.kind}/${label}`, over: slow, under: fast });
}

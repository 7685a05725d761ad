import { describe, expect, it } from "vitest";
import { EXAMPLE_COST, EXAMPLE_CURVE, makeProblem } from "./problem.fixture.ts";
import type { Problem, Solution } from "./problem.ts";
import { solveLp } from "./solve-lp.ts";

/**
 * Tolerances. The last grid's step is 1/2048 of an engine's reach, and the programme may rest anywhere within a step of the
 * optimum: loads are right to 1/1000 of 100, prices to φ″ (8 to 160 ms per unit in these examples) times half a step, the
 * objective, being flat at its optimum, to 1e-6.
 */
const LOAD = 0.1;
const PRICE = 2;
const COST = 1e-6;

function expectCost(solution: Solution, costMs: number): void {
  expect(solution.status).toBe("solved");
  expect(Math.abs(solution.objectiveMs - costMs) / costMs).toBeLessThan(COST);
  expect(solution.lowerBoundMs).toBeLessThanOrEqual(costMs * (1 + 1e-12));
  expect((costMs - solution.lowerBoundMs) / costMs).toBeLessThan(COST);
}

function expectLoads(solution: Solution, loads: readonly number[]): void {
  for (const [engine, load] of loads.entries()) expect(Math.abs(solution.loadWps[engine]! - load)).toBeLessThan(LOAD);
}

function worth(problem: Problem, { loadWps, priceMs }: Solution, engine: number, phiMs: number): number {
  return (loadWps[engine]! * priceMs[engine]! - phiMs) / problem.curves.capacityWps[engine]!;
}

describe("closed forms", () => {
  const far = (demand: number, capacity = 100, slope = 400) =>
    makeProblem({
      demand: [demand],
      cost: [[0, 60]],
      capacity: [capacity, capacity],
      curves: [
        [
          [0, 0],
          [1, slope],
        ],
      ],
    });

  it("splits between a near and a far engine where their marginal costs meet", () => {
    const problem = far(80);
    const solution = solveLp(problem);
    expectCost(solution, 15_087.5);
    expectLoads(solution, [43.75, 36.25]);
    expect(Math.abs(solution.priceMs[0]! - 350)).toBeLessThan(PRICE);
    expect(Math.abs(solution.priceMs[1]! - 290)).toBeLessThan(PRICE);
    expect(Math.abs(worth(problem, solution, 0, 4 * 43.75 ** 2) - 76.5625)).toBeLessThan(PRICE);
    expect(Math.abs(worth(problem, solution, 1, 4 * 36.25 ** 2) - 52.5625)).toBeLessThan(PRICE);
  });

  it("fills an engine to its wall and prices the wall", () => {
    // A wall at 0.94 of 100 is a capacity of 94; Q keeps its slope in requests/s.
    const problem = far(186, 94, 376);
    const solution = solveLp(problem);
    expectCost(solution, 74_720);
    expectLoads(solution, [94, 92]);
    expect(Math.abs(solution.priceMs[0]! - 796)).toBeLessThan(PRICE);
    expect(Math.abs(solution.priceMs[0]! - 2 * 4 * 94 - 44)).toBeLessThan(PRICE);
  });

  const knotted = (demand: number) =>
    makeProblem({
      demand: [demand],
      cost: [[0, 120]],
      capacity: [100, 100],
      curves: [
        [
          [0, 0],
          [0.5, 50],
          [1, 250],
        ],
      ],
    });

  it("rests an engine on a knot and prices it between the knot's marginals", () => {
    const solution = solveLp(knotted(90));
    expectCost(solution, 8900);
    expectLoads(solution, [50, 40]);
    expect(Math.abs(solution.priceMs[0]! - 200)).toBeLessThan(PRICE);
  });

  it("finds a price in the range that two knots leave", () => {
    const solution = solveLp(knotted(100));
    expectCost(solution, 11_000);
    expectLoads(solution, [50, 50]);
    expect(solution.priceMs[0]!).toBeGreaterThan(220 - PRICE);
    expect(solution.priceMs[0]!).toBeLessThan(250 + PRICE);
  });

  const example = (demand: readonly number[], limit = 1) =>
    makeProblem({
      demand,
      cost: EXAMPLE_COST,
      capacity: [100 * limit, 100 * limit, 80 * limit],
      curves: [EXAMPLE_CURVE.map(([rho, ms]) => [rho / limit, ms] as const)],
      shedStepMs: 300,
      shedSteps: 20,
    });

  it("sends 30.47 of b's 120 requests/s to c in the three-cluster example", () => {
    const problem = example([90, 120, 40]);
    const solution = solveLp(problem);
    expectCost(solution, 98_730.2);
    expect(Math.abs(solution.flowWps[5]! - 2742 / 90)).toBeLessThan(LOAD);
    for (const [engine, price] of [2000, 1981.33, 1923.33].entries())
      expect(Math.abs(solution.priceMs[engine]! - price)).toBeLessThan(PRICE);
  });

  it("sheds 13.0, 12.5 and 10.0 % when the example's demand rises by a fifth, by the steps of the price", () => {
    const solution = solveLp(example([108, 144, 48], 0.94));
    expect(solution.objectiveMs - solution.lowerBoundMs).toBeLessThan(1e-6 * solution.objectiveMs);
    const percent = Array.from(solution.shedWps, (shed, cell) => (100 * shed) / [108, 144, 48][cell]!);
    expect(percent[0]).toBeCloseTo(12.963, 3);
    expect(percent[1]).toBeCloseTo(12.5, 3);
    expect(percent[2]).toBeCloseTo(10, 3);
  });

  it("sheds from the farthest alone where the price has no steps", () => {
    const solution = solveLp({ ...example([108, 144, 48], 0.94), shedSteps: 0 });
    const percent = Array.from(solution.shedWps, (shed, cell) => (100 * shed) / [108, 144, 48][cell]!);
    expect(percent[0]).toBeCloseTo(12.963, 3);
    expect(percent[1]).toBeCloseTo(15.833, 3);
    expect(percent[2]).toBeCloseTo(0, 3);
  });

  it.each([
    { demand: 97, shed: 0, price: 3000 },
    { demand: 103, shed: 3, price: 60_000 },
  ])("uses the headroom before it sheds: $demand on 100 sheds $shed", ({ demand, shed, price }) => {
    const solution = solveLp(
      makeProblem({
        demand: [demand],
        cost: [[0]],
        capacity: [100],
        curves: [[[0, 0]]],
        headroom: 0.06,
        headroomMs: 6000,
      }),
    );
    expect(solution.shedWps[0]).toBeCloseTo(shed, 6);
    expect(Math.abs(solution.priceMs[0]! - price)).toBeLessThan(1e-3);
  });

  it("sheds the low priority until it is gone, however much less work its requests are", () => {
    // Per unit of work; class A's requests are 10 units, B's 1, and A's rank is one above B's.
    const two = (a: number, b: number) =>
      solveLp(
        makeProblem({
          demand: [a, b],
          cost: [[0], [0]],
          capacity: [10],
          curves: [[[0, 0]]],
          shedMs: [120_000, 60_000],
          shedStepMs: 300,
          shedSteps: 20,
        }),
      ).shedWps;
    expect([...two(8, 6)]).toEqual([0, expect.closeTo(4, 6)]);
    expect([...two(12, 6)]).toEqual([expect.closeTo(2, 6), expect.closeTo(6, 6)]);
  });

  it("finds the symmetric plan of two equal engines, whose true latency is 12.5 % above the best there is", () => {
    // Two classes of equal demand; only the first one's latency counts. The model weighs latency by work, so it can't
    // part them, and that is what the weighting costs: (1 − r)²/(8(1 + r)) of the plan at r = 0.
    const problem = makeProblem({
      demand: [0.5, 0.5],
      cost: [
        [0, 0],
        [0, 0],
      ],
      capacity: [1, 1],
      curves: [
        [
          [0, 0],
          [1, 1],
        ],
      ],
    });
    const { flowWps, loadWps } = solveLp(problem);
    expect([...loadWps]).toEqual([0.5, 0.5]);
    const trueCost = flowWps[0]! * loadWps[0]! + flowWps[1]! * loadWps[1]!;
    let best = Number.POSITIVE_INFINITY;
    for (let first = 0; first <= 0.5; first += 1 / 64) {
      for (let second = 0; second <= 0.5; second += 1 / 64)
        best = Math.min(best, first * (first + second) + (0.5 - first) * (1 - first - second));
    }
    expect((trueCost - best) / trueCost).toBeCloseTo(0.125, 12);
  });
});

describe("invariances", () => {
  const base = { cost: EXAMPLE_COST, curves: [EXAMPLE_CURVE] };
  const one = solveLp(makeProblem({ ...base, demand: [90, 120, 40], capacity: [100, 100, 80] }));

  it("takes two engines of 50 at one place for one of 100, and gives them equal loads", () => {
    const twins = solveLp(
      makeProblem({
        curves: [EXAMPLE_CURVE],
        cost: EXAMPLE_COST.map(([a, b, c]) => [a!, a!, b!, c!]),
        demand: [90, 120, 40],
        capacity: [50, 50, 100, 80],
      }),
    );
    expect(twins.objectiveMs).toBeCloseTo(one.objectiveMs, 6);
    expect(twins.loadWps[0]).toBe(twins.loadWps[1]);
    expect(twins.loadWps[0]! + twins.loadWps[1]!).toBeCloseTo(one.loadWps[0]!, 9);
    expect(twins.priceMs[0]).toBe(twins.priceMs[1]);
  });

  it.each([1e-4, 1e3])("scales: demand and capacity times %d leave the prices and multiply the cost", (scale) => {
    const scaled = solveLp(
      makeProblem({
        ...base,
        demand: [90, 120, 40].map((each) => each * scale),
        capacity: [100, 100, 80].map((each) => each * scale),
      }),
    );
    expect(scaled.objectiveMs / scale).toBeCloseTo(one.objectiveMs, 4);
    for (const [engine, price] of one.priceMs.entries()) expect(scaled.priceMs[engine]).toBeCloseTo(price, 4);
  });

  it("costs what its requests wait: Σ z·(c + Q)", () => {
    let waiting = 0;
    for (const [arc, flow] of one.flowWps.entries()) {
      const engine = arc % 3;
      const rho = one.loadWps[engine]! / [100, 100, 80][engine]!;
      const right = EXAMPLE_CURVE.findIndex(([knot]) => knot > rho);
      const [[r0, q0], [r1, q1]] = [EXAMPLE_CURVE[right - 1]!, EXAMPLE_CURVE[right]!];
      waiting += flow * (EXAMPLE_COST[(arc - engine) / 3]![engine]! + q0 + ((q1 - q0) / (r1 - r0)) * (rho - r0));
    }
    expect(one.objectiveMs).toBeCloseTo(waiting, 6);
  });

  it("gives the same answer twice", () => {
    const again = solveLp(makeProblem({ ...base, demand: [90, 120, 40], capacity: [100, 100, 80] }));
    expect(again).toEqual(one);
  });
});

describe("ways to end", () => {
  const spec = { demand: [10], cost: [[1, 2]], capacity: [20, 20], curves: [[[0, 0] as const]] };

  it.each([
    { what: "no cell", problem: makeProblem({ demand: [], cost: [], capacity: [10], curves: [[[0, 0]]] }) },
    { what: "no engine", problem: makeProblem({ demand: [], cost: [], capacity: [], curves: [] }) },
    { what: "no demand", problem: makeProblem({ ...spec, demand: [0] }) },
  ])("solves $what at no cost", ({ problem }) => {
    expect(solveLp(problem)).toMatchObject({ status: "solved", objectiveMs: 0, lowerBoundMs: 0 });
  });

  it("sheds everything where no engine has capacity", () => {
    const solution = solveLp(makeProblem({ ...spec, capacity: [0, 0] }));
    expect(solution).toMatchObject({ status: "solved", objectiveMs: 600_000 });
    expect([...solution.shedWps]).toEqual([10]);
  });

  it("sheds a cell without an arc and serves the others", () => {
    const solution = solveLp(makeProblem({ ...spec, demand: [10, 5], cost: [[1, 2], []] }));
    expect([...solution.shedWps]).toEqual([0, 5]);
  });

  it.each([
    { what: "a demand that is no number", change: { demandWps: Float64Array.of(Number.NaN) }, names: "demandWps[0]" },
    {
      what: "an infinite cost",
      change: { arcCostMs: Float64Array.of(1, Number.POSITIVE_INFINITY) },
      names: "arcCostMs[1]",
    },
  ])("answers $what as not finite", ({ change, names }) => {
    const solution = solveLp({ ...makeProblem(spec), ...change });
    expect(solution.status).toBe("not-finite");
    expect(solution.message).toContain(names);
  });

  it.each([
    { what: "a negative demand", change: { demandWps: Float64Array.of(-1) }, names: "demandWps[0] is -1" },
    { what: "an arc to nowhere", change: { arcEngine: Uint32Array.of(0, 7) }, names: "arcEngine[1] is 7" },
    { what: "a column too short", change: { shedMs: new Float64Array(0) }, names: "shedMs is 0" },
    {
      what: "a concave curve",
      change: makeProblem({
        ...spec,
        curves: [
          [
            [0, 0],
            [0.5, 50],
            [1, 60],
          ],
        ],
      }),
      names: "engine 0",
    },
  ])("answers $what as invalid", ({ change, names }) => {
    const solution = solveLp({ ...makeProblem(spec), ...change });
    expect(solution.status).toBe("invalid");
    expect(solution.message).toContain(names);
  });

  it("stops after a pass when its time is up, with flows that can be published", () => {
    let now = 0;
    const problem = makeProblem({
      demand: [90, 120, 40],
      cost: EXAMPLE_COST,
      capacity: [100, 100, 80],
      curves: [EXAMPLE_CURVE],
    });
    const capped = solveLp(problem, { deadlineMs: 25, nowMs: () => (now += 10) });
    const whole = solveLp(problem);
    expect(capped.status).toBe("capped");
    expect(capped.objectiveMs).toBeGreaterThan(whole.objectiveMs);
    expect(capped.lowerBoundMs).toBeLessThan(capped.objectiveMs);
    expect(capped.flowWps.reduce((sum, flow) => sum + flow, 0)).toBeCloseTo(250, 9);
  });
});

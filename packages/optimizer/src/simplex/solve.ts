import { checkProblem, notANumber } from "../check-problem.ts";
import { noSolution } from "../no-solution.ts";
import type { Problem, Solution } from "../problem.ts";
import { lowerBound, objective, pricesAtLoads } from "./certificate.ts";
import { crash } from "./crash.ts";
import { createEqualiser, equalise } from "./equalise.ts";
import { extract } from "./extract.ts";
import { createGrid, regrid } from "./grid.ts";
import { createNetwork, type Network } from "./network.ts";
import { enterInRounds } from "./rounds.ts";
import { createPricing, runSimplex, takeSinks } from "./simplex.ts";
import { letGo, standStill } from "./stand.ts";
import { keepWarm, plant, type Warm } from "./warm.ts";

/**
 * The network simplex on adaptive cost segments, finished by exact equalisation.
 *
 * A stage cuts every engine's cost into segments around its present load, finest step η·U, solves that piecewise-linear
 * network to ε, then lets go of the segments: with the arcs of the tree fixed, every component is brought to its exact
 * optimum. What little is still wrong with the tree is mended in rounds of entering arcs and equalising. Then the
 * certificate; the next stage is four times finer.
 */
export interface SimplexOptions {
  /** Stop at (F − LB) ÷ LB at most this. Default 1e-9. */
  readonly targetGap?: number;
  /** Pivots in all. Default 60 per node, at least 1,000. */
  readonly pivotLimit?: number;
  /** Asked every 64 pivots and between stages; true ends the solve with what it has. */
  readonly poll?: () => boolean;
  /** What an earlier solve of a like problem (same cells and engines by number) left. */
  readonly warm?: Warm;
}

export interface SimplexSolution extends Solution {
  readonly warm: Warm;
  readonly pivots: number;
  readonly stages: number;
  /** Relative gap after each stage. */
  readonly gapHistory: readonly number[];
}

const COLD_ETA = 1 / 32;
const WARM_ETA = 1 / 128;
/**
 * From references every engine moves by a little and the tree is made anew: all arcs of the last one rest on their
 * references, so that it fits nowhere. Coarser steps cost a stage or two more, finer ones more pivots at full engines.
 */
const STAND_ETA = 1 / 2048;
const MOST_STAGES = 12;
/** Part of the target that pricing may leave: a reduced cost of −ε on every unit of demand. */
const PRICING_PART = 0.15;

export function solveSimplex(problem: Problem, options: SimplexOptions = {}): SimplexSolution {
  const wrong = checkProblem(problem) ?? checkChurn(problem);
  if (wrong !== null) return refused(problem, wrong);
  const { targetGap = 1e-9, poll = () => false, warm } = options;
  const network = createNetwork(problem);
  const pivotLimit = options.pivotLimit ?? defaultPivotLimit(problem);
  const limits = { pivotLimit, poll };
  const equaliser = createEqualiser(network);
  const pricing = createPricing(network);
  const demand = totalOf(problem.demandWps);
  // Where nothing costs anything the bound is what rounding of the prices leaves, and no part of it.
  const leastMs = priceRounding(network) * demand;
  const isClose = (cost: number, bound: number): boolean =>
    cost - bound <= Math.max(targetGap * Math.abs(bound), leastMs);
  let eta = STAND_ETA;
  // From the last tree little may be wrong: rounds come before the first simplex.
  let isNear = false;
  if (!standStill(network, warm)) {
    letGo(network);
    eta = WARM_ETA;
    if (warm !== undefined && plant(network, warm)) {
      equalise(network, equaliser);
      isNear = true;
    } else {
      eta = COLD_ETA;
      crash(network, equaliser);
    }
  }
  const grid = createGrid(network);

  const gapHistory: number[] = [];
  let best = lowerBound(network);
  const prices = new Float64Array(network.engines);
  keepPrices(network, network.price, prices);
  let cost = objective(network);
  let atLoads: Float64Array | undefined;
  let stages = 0;
  let status: "solved" | "capped" = "capped";
  let message = "";
  const gap = (): number => (cost - best) / Math.max(Math.abs(best), Number.MIN_VALUE);
  const close = (): boolean => isClose(cost, best);
  const certify = (from: Float64Array = network.price): void => {
    const bound = lowerBound(network, from);
    if (!(bound > best)) return;
    best = bound;
    keepPrices(network, from, prices);
  };
  if (close()) {
    status = "solved";
    gapHistory.push(gap());
  }
  while (status !== "solved") {
    if (stages === MOST_STAGES) {
      message = endMessage("stages", pricing.pivots, gap());
      break;
    }
    const epsilon = pricingTolerance(network, targetGap, demand > 0 ? cost / demand : 0);
    const pivotsBefore = pricing.pivots;
    let finished = true;
    if (!isNear) {
      regrid(network, grid, eta);
      finished = runSimplex(network, grid, pricing, epsilon, limits);
      takeSinks(network, grid);
      // Both sets of prices bound: those of the segments (right to within η everywhere) and the equalised ones (exact,
      // but a component that was cut off may have left the others' prices behind).
      certify();
      if (finished) equalise(network, equaliser);
      eta /= 4;
    }
    isNear = false;
    if (finished) finished = enterInRounds(network, grid, pricing, equaliser, { eta, epsilon, limits });
    stages++;
    cost = objective(network);
    certify();
    // Nothing enters any more: what is left of the gap is rounding of the prices.
    if (!close() && pricing.pivots === pivotsBefore) {
      atLoads ??= new Float64Array(network.root + 1);
      pricesAtLoads(network, atLoads);
      certify(atLoads);
    }
    gapHistory.push(gap());
    if (close()) status = "solved";
    else if (pricing.pivots >= pivotLimit) {
      message = endMessage("pivots", pricing.pivots, gap());
      break;
    } else if (!finished || poll()) {
      message = endMessage("stopped", pricing.pivots, gap());
      break;
    }
  }
  return {
    status,
    message,
    ...extract(network, problem),
    priceMs: prices,
    lowerBoundMs: best,
    warm: keepWarm(network),
    pivots: pricing.pivots,
    stages,
    gapHistory,
  };
}

/** Far above what any fleet needs (20 to 30 per node from nothing), so that only a mistake ends there. */
export function defaultPivotLimit(problem: Problem): number {
  return Math.max(1000, 60 * (problem.demandWps.length + problem.curves.capacityWps.length));
}

export function endMessage(why: "pivots" | "stages" | "stopped", pivots: number, gap: number): string {
  const ended = {
    pivots: "reached the pivot limit",
    stages: "reached the last stage",
    stopped: "stopped at the deadline",
  }[why];
  return `${ended} after ${pivots} pivots with a gap of ${gap.toExponential(1)}`;
}

/** What the churn columns have wrong; the others are `checkProblem`'s. */
export function checkChurn({ churn, arcEngine }: Problem): { status: Solution["status"]; message: string } | null {
  if (churn === undefined) return null;
  for (const name of ["referenceWps", "moveMs"] as const) {
    const column = churn[name];
    if (column.length !== arcEngine.length)
      return { status: "invalid", message: `churn.${name} is ${column.length} long, must be ${arcEngine.length}` };
    const wrong = notANumber(`churn.${name}`, column);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** ε, ms: the pricing's share of the target, but never within the rounding of the prices. */
function pricingTolerance(network: Network, targetGap: number, meanMs: number): number {
  return Math.max(PRICING_PART * targetGap * meanMs, priceRounding(network));
}

/** What prices may be off by, ms per unit of work. */
function priceRounding({ topPrice }: Network): number {
  return Math.max(2 ** -45 * topPrice, 1e-12);
}

/** The engine prices that the best bound so far was made from. */
function keepPrices({ cells, engines, root }: Network, price: Float64Array, out: Float64Array): void {
  for (let engine = 0; engine < engines; engine++) out[engine] = Math.max(0, price[cells + engine]! - price[root]!);
}

function totalOf(column: Float64Array): number {
  let total = 0;
  for (const value of column) total += value;
  return total;
}

export function refused(
  problem: Problem,
  { status, message }: { status: Solution["status"]; message: string },
): SimplexSolution {
  return {
    ...noSolution(problem, status, message),
    warm: {
      cells: 0,
      engines: 0,
      parent: new Int32Array(0),
      heldCell: new Uint32Array(0),
      heldEngine: new Uint32Array(0),
      price: new Float64Array(0),
      load: new Float64Array(0),
      part: new Float64Array(0),
    },
    pivots: 0,
    stages: 0,
    gapHistory: [],
  };
}

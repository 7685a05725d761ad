import { seededRandom } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import { expect, it } from "vitest";
import { squeezeByHighs } from "../highs.fixture.ts";
import type { Problem } from "../problem.ts";
import { createSimplex } from "./choose.ts";
import { faultsOf } from "./faults.fixture.ts";
import { nextProblem, oddProblem } from "./odd-problem.fixture.ts";
import type { SimplexSolution } from "./solve.ts";
import type { Warm } from "./warm.ts";

/**
 * Random problems that have everything that can go wrong (see `oddProblem`), one in ten of them larger, one in three with
 * a price on moves, each followed through two ticks from the last tree. Of every one: the twins give the same to the last
 * bit, demand is conserved, no capacity exceeded, and 0 ≤ gap ≤ 1e-6 by a certificate that shares no code with them; of one
 * in `SQUEEZED` of a size that HiGHS can judge, the cost lies between its two linear programmes.
 *
 *     GUIDEVANE_FUZZ_SECONDS=600 GUIDEVANE_FUZZ_SEED=7 npx vitest run packages/optimizer/src/simplex/truth
 *
 * goes on for that long (about 2,400 problems a second on one core) and prints the seeds. Without, a short slice.
 */
const seconds = Number(process.env.GUIDEVANE_FUZZ_SECONDS ?? 0);
const isLong = seconds > 0;
const first = Number(process.env.GUIDEVANE_FUZZ_SEED ?? 1);
const most = isLong ? Number.POSITIVE_INFINITY : 900;
const SQUEEZED = 20;
/** Of each piece of a curve: wide enough apart for a quick programme, near enough to mean something. */
const SEGMENTS = 12;

const ts = createSimplex("ts");
const native = createSimplex("auto");
const twins = loadNative().binding === null ? "one twin" : "the twins equal";

it(`${twins}, nothing lost, nothing overfilled, the gap proved, on random problems`, {
  timeout: 1000 * (seconds + 60),
}, () => {
  const until = isLong ? performance.now() + 1000 * seconds : Number.POSITIVE_INFINITY;
  const count = { instances: 0, squeezed: 0 };
  let seed = first;
  for (; count.instances < most && performance.now() < until; seed++) {
    const random = seededRandom(seed);
    const size = seed % 10 === 0 ? { cells: 60, engines: 40 } : { cells: 12, engines: 9 };
    let problem = oddProblem(seed, seed % 3 === 0, size);
    let solution = solveByBoth(problem, undefined, `seed ${seed}`);
    for (let tick = 0; tick < 3; tick++) {
      const at = `seed ${seed}, tick ${tick}`;
      if (tick > 0) {
        problem = nextProblem(problem, solution, random);
        solution = solveByBoth(problem, solution.warm, at);
      }
      expect(faultsOf(problem, solution), at).toEqual([]);
      count.instances++;
      if (count.instances % SQUEEZED === 0 && isOfOrdinarySize(problem)) {
        squeeze(problem, solution, at);
        count.squeezed++;
      }
    }
  }
  console.log(
    `seeds ${first} to ${seed - 1}: ${count.instances} problems, ${count.squeezed} of them squeezed by HiGHS`,
  );
  expect(count.squeezed).toBeGreaterThan(count.instances / 100);
});

function solveByBoth(problem: Problem, warm: Warm | undefined, at: string): SimplexSolution {
  const options = warm === undefined ? {} : { warm };
  const one = ts.solve(problem, options);
  const other = native.solve(problem, options);
  // Comparing every number by its bits is many times sooner than asking for a difference to show.
  if (!isSame(one, other)) expect(other, at).toEqual(one);
  return one;
}

function isSame(one: SimplexSolution, other: SimplexSolution): boolean {
  const columnsOf = ({ flowWps, shedWps, loadWps, priceMs, warm }: SimplexSolution) => [
    ...[flowWps, shedWps, loadWps, priceMs, warm.price, warm.load, warm.part],
    ...[warm.parent, warm.heldCell, warm.heldEngine],
  ];
  const theirs = columnsOf(other);
  return (
    one.status === other.status &&
    one.message === other.message &&
    one.pivots === other.pivots &&
    Object.is(one.objectiveMs, other.objectiveMs) &&
    Object.is(one.lowerBoundMs, other.lowerBoundMs) &&
    columnsOf(one).every((column, of) => {
      const like = theirs[of]!;
      return column.length === like.length && column.every((value, at) => Object.is(value, like[at]));
    })
  );
}

/** HiGHS works with absolute tolerances: only of numbers of ordinary size does it say anything. */
function isOfOrdinarySize({ demandWps, arcEngine }: Problem): boolean {
  const all = demandWps.reduce((sum, value) => sum + value, 0);
  return arcEngine.length > 0 && arcEngine.length < 100 && all > 1 && all < 1e4;
}

function squeeze(problem: Problem, { objectiveMs }: SimplexSolution, at: string): void {
  const { lowMs, highMs } = squeezeByHighs(problem, SEGMENTS);
  const rounding = 1e-7 * Math.abs(highMs);
  expect(objectiveMs, at).toBeGreaterThanOrEqual(lowMs - rounding);
  expect(objectiveMs, at).toBeLessThanOrEqual(highMs + rounding);
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type LoadCurve, parseLoadPoints } from "../packages/signals/src/index.ts";

/**
 * How well any fit could do on public measurements, by what the source says its times are: how often TTFT falls from one load
 * level to the next higher one, the least mean error of any non-decreasing curve on the very points that it is made of, and the
 * error of a straight line, on logarithmic scales, between the two neighbours of a level that is left out. Run where the
 * measurements are:
 *
 *     GUIDEVANE_DATA=../shared/data node --conditions=@guidevane/source scripts/fit-noise.ts
 */

const LEVELS = 4;
const DATA = join(process.env.GUIDEVANE_DATA ?? "../shared/data", "profiles/engine_load_points.csv");
const curves = parseLoadPoints(readFileSync(DATA, "utf8"), DATA).curves.filter(
  ({ deployment, loop, points }) => deployment.mode === "agg" && loop === "closed" && points.length >= LEVELS,
);

console.log("| times are | curves | TTFT falls | best non-decreasing | between neighbours | TBOT between neighbours |");
console.log("| --- | --- | --- | --- | --- | --- |");
for (const statistic of ["unspecified", "mean", "p50"] as const) {
  const some = curves.filter((curve) => curve.statistic === statistic);
  const ttft = some.map((curve) => curve.points.map(({ ttftMs }) => ttftMs));
  const falls = ttft.flatMap((times) => times.slice(1).map((ms, at): number => (ms < times[at]! ? 1 : 0)));
  const tbot = some.map((curve) => betweenNeighbours(curve, ({ tbotMs }) => tbotMs));
  const shown = [
    falls.reduce((sum, fall) => sum + fall, 0) / falls.length,
    median(ttft.map(leastError)),
    median(some.map((curve) => betweenNeighbours(curve, ({ ttftMs }) => ttftMs))),
    median(tbot),
  ].map((part) => `${(100 * part).toFixed(1)} %`);
  console.log(`| ${statistic} | ${some.length} | ${shown.join(" | ")} |`);
}

/** Of all non-decreasing curves: one through values that were measured is among the best. */
function leastError(times: readonly number[]): number {
  const values = [...times].sort((a, b) => a - b);
  /** By the value at the level before: the least sum of errors so far. */
  let sums = values.map(() => 0);
  for (const ms of times) {
    let least = Number.POSITIVE_INFINITY;
    sums = sums.map((sum, at) => {
      least = Math.min(least, sum);
      return least + Math.abs(values[at]! / ms - 1);
    });
  }
  return Math.min(...sums) / times.length;
}

function betweenNeighbours({ points }: LoadCurve, of: (point: LoadCurve["points"][number]) => number): number {
  const errors = points.slice(1, -1).map((point, at) => {
    const [below, above] = [points[at]!, points[at + 2]!];
    const part = Math.log(point.inFlight / below.inFlight) / Math.log(above.inFlight / below.inFlight);
    return Math.abs((of(below) ** (1 - part) * of(above) ** part) / of(point) - 1);
  });
  return errors.reduce((sum, error) => sum + error, 0) / errors.length;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

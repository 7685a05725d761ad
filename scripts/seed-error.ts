import { readFileSync } from "node:fs";
import { join } from "node:path";
import { calibrate } from "../packages/signals/src/fit/roofline.ts";
import { knownCurves, seedErrors } from "../packages/signals/src/fit/seed-error.ts";
import { parseLoadPoints } from "../packages/signals/src/index.ts";

/**
 * Prints the coefficients of the roofline seed fitted to public measurements, and how wrong the seed is on hardware that was
 * left out of the fit, with none, one, two and four levels measured. Run where the measurements are:
 *
 *     GUIDEVANE_DATA=../shared/data node --conditions=@guidevane/source scripts/seed-error.ts
 */

const DATA = join(process.env.GUIDEVANE_DATA ?? "../shared/data", "profiles/engine_load_points.csv");
const known = knownCurves(parseLoadPoints(readFileSync(DATA, "utf8"), DATA).curves);
const figures = (values: readonly number[]): string => values.map((value) => value.toPrecision(4)).join(", ");
const { tbot, ttft } = calibrate(known);
console.log(`${known.length} curves\ntbot: [${figures(tbot)}]\nttft: [${figures(ttft)}]\n`);
console.log("| levels measured | TTFT median / 90th | TBOT median / 90th |\n| --- | --- | --- |");
for (const { points, ttft, tbot } of seedErrors(known).byPoints) {
  const shown = [ttft, tbot].map(
    ({ median, ninety }) => `${(100 * median).toFixed(1)} / ${(100 * ninety).toFixed(1)} %`,
  );
  console.log(`| ${points} | ${shown.join(" | ")} |`);
}

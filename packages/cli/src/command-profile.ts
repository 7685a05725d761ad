import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { GuidevaneError } from "@guidevane/core";
import type { FittedProfile, LoadCurve } from "@guidevane/signals";
import type { Command } from "commander";
import { badUsage } from "./exit-code.ts";
import { plotProfiles } from "./profile-plot.ts";
import { showFits } from "./profile-text.ts";
import { profileYaml } from "./profile-yaml.ts";
import { readInput } from "./read-fleet.ts";
import { listShipped, shippedProfile } from "./shipped-profiles.ts";

interface FitFlags {
  json?: true;
  only?: string;
  at?: string;
  out?: string;
  plot?: string;
  licence?: string;
}

/** One curve of the file and what was made of it. */
export interface CurveFit {
  readonly curve: LoadCurve;
  readonly profile: FittedProfile;
  /** What the fit says of so many requests in flight, where that was asked. */
  readonly at: {
    readonly inFlight: number;
    readonly ttftMs: number;
    readonly tbotMs: number;
    readonly extrapolated: boolean;
  } | null;
}

export function addProfile(program: Command): void {
  const profile = program.command("profile").description("measured latency curves of engines");
  profile
    .command("list")
    .description("the profiles that ship with the program: common GPUs and models, from public measurements")
    .action(() => program.configureOutput().writeOut?.(listShipped()));
  profile
    .command("show")
    .description("print one of them, to be kept beside a fleet file")
    .argument("<name>", "as `profile list` names it")
    .action((name: string) => program.configureOutput().writeOut?.(shippedProfile(name)));
  profile
    .command("fit")
    .description("fit profiles to measured load levels (CSV, docs/profiles.md), with the error of levels left out")
    .argument("<file>", "CSV of measured points")
    .option("--only <text>", "curves whose name has this text in it")
    .option("--at <requests>", "what each fit says of so many requests in flight; says so where that is extrapolated")
    .option("--out <dir>", "write a profile file for each curve")
    .option("--plot <file>", "write an SVG of the curves and the points that they were fitted to")
    .option("--licence <text>", "licence of the data, for the profile files")
    .option("--json", "print JSON: for each curve its profile, with coefficients, band and held-out errors")
    .action(async (file: string, flags: FitFlags) => {
      program.configureOutput().writeOut?.(await fit(file, flags));
    });
}

async function fit(file: string, flags: FitFlags): Promise<string> {
  const inFlight = flags.at === undefined ? null : Number(flags.at);
  if (inFlight !== null && !(inFlight > 0)) badUsage("--at", flags.at!, "must be a number above 0");
  const { fitCurve, fitProfile, LEVELS_MIN, parseLoadPoints, predictAtInFlight } = await import("@guidevane/signals");
  const { curves, left } = parseLoadPoints(await readInput("file of points", file), file);
  const context = { curves, data: basename(file), licence: flags.licence };
  const fits: CurveFit[] = [];
  let short = 0;
  for (const curve of curves) {
    if (curve.points.length < LEVELS_MIN) {
      short += 1;
      continue;
    }
    const profile = fitProfile(curve, context);
    if (flags.only !== undefined && !profile.profile.includes(flags.only.toLowerCase())) continue;
    const said = inFlight === null ? null : predictAtInFlight(fitCurve(curve), curve.outputTokens, inFlight);
    fits.push({
      curve,
      profile,
      at:
        said === null
          ? null
          : {
              inFlight: inFlight!,
              ttftMs: said.ttftMs,
              tbotMs: said.tbotMs,
              extrapolated: said.extrapolated,
            },
    });
  }
  if (fits.length === 0)
    throw new GuidevaneError(
      "bad_points",
      `${file}: no curve to fit: ${curves.length} curves, ${short} of them with fewer than ${LEVELS_MIN} load levels${flags.only === undefined ? "" : `, none of the others has ${JSON.stringify(flags.only)} in its name`}`,
    );
  if (flags.out !== undefined) await writeProfiles(flags.out, fits);
  if (flags.plot !== undefined) await writeFile(flags.plot, plotProfiles(fits));
  const rest = { ...left, ...(short === 0 ? {} : { [`curves of fewer than ${LEVELS_MIN} load levels`]: short }) };
  return flags.json ? `${JSON.stringify({ curves: fits.map(toJson), left: rest }, null, 2)}\n` : showFits(fits, rest);
}

/** A curve's fit for a program: the profile, whether its shape is right, and the points beside what the fit says of them. */
function toJson({ curve, profile, at }: CurveFit): unknown {
  return { ...profile, shape: shapeOf(profile), measuredPoints: curve.points, ...(at === null ? {} : { at }) };
}

/** Checks what the fit promises, from the coefficients as they are printed. */
function shapeOf({ ttftMs, tbotMs }: FittedProfile): {
  readonly convex: boolean;
  readonly nonDecreasing: boolean;
} {
  const slopes = [ttftMs, tbotMs].map((knots) =>
    knots.slice(1).map(([at, ms], i) => (ms - knots[i]![1]) / (at - knots[i]![0])),
  );
  return {
    nonDecreasing: slopes.every((each) => each.every((slope) => slope >= 0)),
    convex: slopes.every((each) =>
      each.every((slope, i) => i === 0 || slope >= each[i - 1]! * (1 - ROUNDING) - ROUNDING),
    ),
  };
}

/** As the reader of profile files allows. */
const ROUNDING = 1e-9;

async function writeProfiles(folder: string, fits: readonly CurveFit[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const { profile } of fits) await writeFile(join(folder, `${profile.profile}.yaml`), profileYaml(profile));
}

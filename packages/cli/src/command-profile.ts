import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { GuidevaneError } from "@guidevane/core";
import type { FittedProfile, LoadCurve } from "@guidevane/signals";
import type { Command } from "commander";
import { addProfileSeed } from "./command-profile-seed.ts";
import { badUsage } from "./exit-code.ts";
import { makeFolderOf, makeOwnFolder } from "./own-folder.ts";
import { readMeasurements } from "./profile-input.ts";
import { plotProfiles } from "./profile-plot.ts";
import { shapeOf } from "./profile-shape.ts";
import { showFits, showLeft } from "./profile-text.ts";
import { profileYaml } from "./profile-yaml.ts";
import { listShipped, shippedProfile } from "./shipped-profiles.ts";

interface FitFlags {
  json?: true;
  only?: string;
  at?: string;
  out?: string;
  plot?: string;
  licence?: string;
  loop?: string;
  gpu?: string;
  model?: string;
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
    .description(
      "fit profiles to measured load levels or logs of requests (docs/profiles.md), with the error of levels left out",
    )
    .argument(
      "<files...>",
      "CSV of measured points; or logs of requests, a run each: CSV, JSONL, of aiperf or vllm bench; also .gz",
    )
    .option("--only <text>", "curves whose name has this text in it")
    .option("--at <requests>", "what each fit says of so many requests in flight; says so where that is extrapolated")
    .option("--out <dir>", "write a profile file for each curve")
    .option("--plot <file>", "write an SVG of the curves and the points that they were fitted to")
    .option("--licence <text>", "licence of the data, for the profile files")
    .option("--loop <kind>", "how the load of a log was made: open or closed (default: as the requests show)")
    .option("--gpu <text>", "GPU of a log that does not say it")
    .option("--model <text>", "model of a log that does not say it")
    .option("--json", "print JSON: for each curve its profile, with coefficients, band and held-out errors")
    .action(async (files: string[], flags: FitFlags) => {
      program.configureOutput().writeOut?.(await fit(files, flags));
    });
  addProfileSeed(profile, (text) => program.configureOutput().writeOut?.(text));
}

async function fit(files: readonly string[], flags: FitFlags): Promise<string> {
  const inFlight = flags.at === undefined ? null : Number(flags.at);
  if (inFlight !== null && !(inFlight > 0)) badUsage("--at", flags.at!, "must be a number above 0");
  const { loop, gpu, model } = flags;
  if (loop !== undefined && loop !== "open" && loop !== "closed") badUsage("--loop", loop, "must be open or closed");
  if (flags.out !== undefined) makeOwnFolder("--out", flags.out);
  if (flags.plot !== undefined) makeFolderOf("--plot", flags.plot);
  const { fitCurve, fitProfile, LEVELS_MIN, predictAtInFlight, upToSaturation } = await import("@guidevane/signals");
  const { curves, left } = await readMeasurements(files, { loop, gpu, model });
  const context = { curves, data: files.map((file) => basename(file)).join(", "), licence: flags.licence };
  const fits: CurveFit[] = [];
  let short = 0;
  const begunMs = performance.now();
  for (const curve of curves) {
    if (curve.points.length < LEVELS_MIN) {
      short += 1;
      continue;
    }
    const profile = fitProfile(curve, context);
    if (flags.only !== undefined && !profile.profile.includes(flags.only.toLowerCase())) continue;
    const { curve: steady, saturationRps } = upToSaturation(curve);
    const said =
      inFlight === null ? null : predictAtInFlight(fitCurve(steady, saturationRps), curve.outputTokens, inFlight);
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
  const msEach = (performance.now() - begunMs) / Math.max(1, curves.length - short);
  if (fits.length === 0)
    throw new GuidevaneError(
      "bad_points",
      `${files.join(", ")}: no curve to fit: ${curves.length} curves, ${short} of them with fewer than ${LEVELS_MIN} load levels (\`profile seed --points\` takes them)${flags.only === undefined ? "" : `, none of the others has ${JSON.stringify(flags.only)} in its name`}\n${showLeft(left)}`.trimEnd(),
    );
  if (flags.out !== undefined) await writeProfiles(flags.out, fits);
  if (flags.plot !== undefined) {
    const plotted = fits.map(({ curve, profile }) => ({
      points: upToSaturation(curve).curve.points,
      profile,
      measured: profile.source.measured,
    }));
    await writeFile(flags.plot, plotProfiles(plotted));
  }
  const rest = { ...left, ...(short === 0 ? {} : { [`curves of fewer than ${LEVELS_MIN} load levels`]: short }) };
  return flags.json
    ? `${JSON.stringify({ curves: fits.map(toJson), left: rest }, null, 2)}\n`
    : showFits(fits, rest, msEach);
}

/** A curve's fit for a program: the profile, whether its shape is right, and the points beside what the fit says of them. */
function toJson({ curve, profile, at }: CurveFit): unknown {
  return { ...profile, shape: shapeOf(profile), measuredPoints: curve.points, ...(at === null ? {} : { at }) };
}

async function writeProfiles(folder: string, fits: readonly CurveFit[]): Promise<void> {
  const names = new Map<string, number>();
  for (const { profile } of fits) {
    // Two workloads can have one shape, and two sources one deployment.
    const before = names.get(profile.profile) ?? 0;
    names.set(profile.profile, before + 1);
    const name = before === 0 ? profile.profile : `${profile.profile}-${before + 1}`;
    await writeFile(join(folder, `${name}.yaml`), profileYaml({ ...profile, profile: name }));
  }
}

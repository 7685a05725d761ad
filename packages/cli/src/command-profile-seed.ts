import { writeFile } from "node:fs/promises";
import { GuidevaneError } from "@guidevane/core";
import type { GpuFacts, LoadCurve, ModelFacts } from "@guidevane/signals";
import type { Command } from "commander";
import { badUsage } from "./exit-code.ts";
import { makeFolderOf } from "./own-folder.ts";
import { readMeasurements } from "./profile-input.ts";
import { plotProfiles } from "./profile-plot.ts";
import { profileYaml } from "./profile-yaml.ts";

interface SeedFlags {
  gpu: string;
  gpus: string;
  model: string;
  precision: string;
  prompt?: string;
  output?: string;
  memory?: string;
  bandwidth?: string;
  bf16?: string;
  fp8?: string;
  params?: string;
  activeParams?: string;
  layers?: string;
  kvNumbers?: string;
  points?: string[];
  plot?: string;
  json?: true;
}

export function addProfileSeed(profile: Command, write: (text: string) => void): void {
  profile
    .command("seed")
    .description(
      "guess a profile from what the hardware can do and the model costs, and from measured levels if there are a few",
    )
    .requiredOption("--gpu <name>", "kind of GPU; one that is not known needs --memory, --bandwidth and --bf16")
    .option("--gpus <number>", "GPUs of one engine", "1")
    .requiredOption("--model <name>", "model; one that is not known needs --params, --layers and --kv-numbers")
    .option("--precision <name>", "of the weights: bf16, fp8, fp4 or int4", "bf16")
    .option("--prompt <tokens>", "prompt tokens of the reference request (default: those of --points)")
    .option("--output <tokens>", "output tokens of it (default: those of --points)")
    .option("--memory <bytes>", "memory of one GPU, as in 80e9")
    .option("--bandwidth <bytes>", "of it, bytes/s")
    .option("--bf16 <flops>", "dense bf16 FLOP/s of one GPU")
    .option("--fp8 <flops>", "dense fp8 FLOP/s (default: it has none)")
    .option("--params <number>", "parameters, as in 8e9")
    .option("--active-params <number>", "those that one token goes through (default: all)")
    .option("--layers <number>", "layers")
    .option("--kv-numbers <number>", "numbers kept of a token: 2 · layers · KV heads · head size")
    .option("--points <files...>", "what was measured of this engine: points or logs, as `profile fit` takes them")
    .option("--plot <file>", "write an SVG of the curves, their band and the measured points")
    .option("--json", "print JSON")
    .action(async (flags: SeedFlags) => write(await seed(flags)));
}

async function seed(flags: SeedFlags): Promise<string> {
  const { GPUS, MODELS, PRECISIONS, seedProfile } = await import("@guidevane/signals");
  const precision = named("--precision", flags.precision, PRECISIONS);
  const gpus = number("--gpus", flags.gpus, 1, 1024);
  if (!Number.isInteger(gpus)) badUsage("--gpus", flags.gpus, "must be a whole number");
  const gpu = gpuOf(flags) ?? named("--gpu", flags.gpu, GPUS);
  const model = modelOf(flags) ?? named("--model", flags.model, MODELS);
  const curve = flags.points === undefined ? null : await measured(flags.points);
  const promptTokens = number("--prompt", flags.prompt ?? curve?.promptTokens, 1, 1e7);
  const outputTokens = number("--output", flags.output ?? curve?.outputTokens, 1, 1e7);
  if (flags.plot !== undefined) makeFolderOf("--plot", flags.plot);
  const profile = seedProfile({
    deployed: { gpu, gpus, model, ...precision, promptTokens, outputTokens },
    sku: flags.gpu,
    model: flags.model,
    precision: flags.precision,
    points: curve?.points ?? [],
  });
  if (flags.plot !== undefined) {
    const inFlight = profile.source.measured?.inFlight;
    const rates = (curve?.points ?? []).map(({ ratePerS }) => ratePerS / profile.capacityWps);
    const range = inFlight === undefined ? null : { from: Math.min(...rates), to: Math.min(1, Math.max(...rates)) };
    await writeFile(flags.plot, plotProfiles([{ points: curve?.points ?? [], profile, measured: range }]));
  }
  return flags.json ? `${JSON.stringify(profile, null, 2)}\n` : profileYaml(profile);
}

/** The one curve of the files, up to its saturation. */
async function measured(files: readonly string[]): Promise<LoadCurve> {
  const { upToSaturation } = await import("@guidevane/signals");
  const { curves } = await readMeasurements(files, {});
  if (curves.length !== 1)
    throw new GuidevaneError(
      "bad_points",
      `${files.join(", ")}: must be one curve of this engine (got ${curves.length})`,
    );
  return upToSaturation(curves[0]!).curve;
}

/** Null where no flag says anything of it. */
function gpuOf({ memory, bandwidth, bf16, fp8 }: SeedFlags): GpuFacts | null {
  if ([memory, bandwidth, bf16, fp8].every((flag) => flag === undefined)) return null;
  return {
    memoryBytes: number("--memory", memory, 1e8, 1e14),
    bytesPerS: number("--bandwidth", bandwidth, 1e9, 1e15),
    bf16Flops: number("--bf16", bf16, 1e9, 1e18),
    fp8Flops: fp8 === undefined ? null : number("--fp8", fp8, 1e9, 1e18),
  };
}

function modelOf({ params, activeParams, layers, kvNumbers }: SeedFlags): ModelFacts | null {
  if ([params, activeParams, layers, kvNumbers].every((flag) => flag === undefined)) return null;
  const parameters = number("--params", params, 1e6, 1e14);
  return {
    parameters,
    activeParameters:
      activeParams === undefined ? parameters : number("--active-params", activeParams, 1e6, parameters),
    layers: number("--layers", layers, 1, 1e4),
    kvNumbersPerToken: number("--kv-numbers", kvNumbers, 1, 1e8),
  };
}

function number(flag: string, said: string | number | undefined, least: number, most: number): number {
  const value = said === "" ? Number.NaN : Number(said);
  // A range check also refuses NaN.
  if (value >= least && value <= most) return value;
  return badUsage(flag, said === undefined ? undefined : String(said), `must be a number from ${least} to ${most}`);
}

function named<T>(flag: string, name: string, known: Readonly<Record<string, T>>): T {
  const found = Object.entries(known).find(([each]) => each === name.toLowerCase());
  return (
    found?.[1] ?? badUsage(flag, name, `must be one of ${Object.keys(known).join(", ")}, or its figures must be given`)
  );
}

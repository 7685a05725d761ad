import { GPUS, MODELS, PRECISIONS } from "./hardware-facts.ts";
import type { LoadCurve, LoadPoint } from "./load-curve.ts";
import { ninetieth } from "./profile-figures.ts";
import { type Coefficients, calibrate, type Deployed, rooflineTimes } from "./roofline.ts";
import { upToSaturation } from "./saturation.ts";
import { type SeedError, shrunk } from "./seed-profile.ts";

/** A measured curve whose hardware and model are known. */
interface Known {
  readonly sku: string;
  readonly deployed: Deployed;
  readonly points: readonly LoadPoint[];
}

/** Curves of closed loops and one pool of at most a node whose hardware and model are known, up to saturation. */
export function knownCurves(curves: readonly LoadCurve[]): Known[] {
  return curves.flatMap((each) => {
    const { points, deployment, promptTokens, outputTokens, loop } = upToSaturation(each).curve;
    const gpu = GPUS[deployment.gpu.toLowerCase()];
    const name = deployment.model.toLowerCase();
    const model = Object.entries(MODELS).find(([known]) => name.includes(known))?.[1];
    const precision = PRECISIONS[deployment.precision === "" ? "bf16" : deployment.precision];
    const gpus = deployment.gpuCount ?? 0;
    if (gpu === undefined || model === undefined || precision === undefined) return [];
    if (deployment.mode !== "agg" || loop !== "closed" || gpus < 1 || gpus > NODE || points.length < LEVELS) return [];
    return [{ sku: deployment.gpu, points, deployed: { gpu, gpus, model, promptTokens, outputTokens, ...precision } }];
  });
}

const NODE = 8;
/** So that one is left to be held out when four are given. */
const LEVELS = 5;

export interface SeedErrors {
  readonly curves: number;
  /** By how many levels were given to the seed. */
  readonly byPoints: readonly { readonly points: number; readonly ttft: SeedError; readonly tbot: SeedError }[];
}

/** Errors at the levels not given, each SKU's curves by coefficients fitted to all other SKUs. */
export function seedErrors(known: readonly Known[]): SeedErrors {
  const others = new Map<string, Coefficients>();
  for (const sku of new Set(known.map((each) => each.sku)))
    others.set(sku, calibrate(known.filter((each) => each.sku !== sku)));
  const byPoints = [0, 1, 2, 3, 4].map((count) => {
    const errors = known.map((each) => errorsOf(each, others.get(each.sku)!, given(count, each.points.length)));
    const of = (name: "ttftMs" | "tbotMs"): SeedError => {
      const sorted = errors.map((error) => error[name]).sort((a, b) => a - b);
      return { median: sorted[sorted.length >> 1]!, ninety: ninetieth(sorted)! };
    };
    return { points: count, ttft: of("ttftMs"), tbot: of("tbotMs") };
  });
  return { curves: known.length, byPoints };
}

/** Places of so many levels: one in the middle, or both ends and evenly between. */
function given(count: number, levels: number): number[] {
  if (count === 1) return [levels >> 1];
  return Array.from({ length: count }, (_, at) => Math.floor((at * (levels - 1)) / (count - 1)));
}

function errorsOf({ deployed, points }: Known, coefficients: Coefficients, places: readonly number[]) {
  const seed = (inFlight: number) => rooflineTimes(deployed, coefficients, inFlight);
  const said = shrunk(
    seed,
    places.map((at) => points[at]!),
  );
  const held = points.filter((_, at) => !places.includes(at));
  const mean = (name: "ttftMs" | "tbotMs"): number =>
    held.reduce((sum, point) => sum + Math.abs(said(point.inFlight)[name] / point[name] - 1), 0) / held.length;
  return { ttftMs: mean("ttftMs"), tbotMs: mean("tbotMs") };
}

import { GuidevaneError } from "@guidevane/core";
import { fitCurve, LEVELS_MIN } from "./fit-curve.ts";
import type { FittedProfile } from "./fit-profile.ts";
import type { LoadPoint } from "./load-curve.ts";
import { inFlightFeatures } from "./load-model.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";
import { type Band, bandOf, prefillPart, rounded, roundedKnots, slug, workOf } from "./profile-figures.ts";
import { type Coefficients, type Deployed, memoryHolds, prefillMs, rooflineTimes, type SeedTimes } from "./roofline.ts";

/** As `scripts/seed-error.ts` prints them: fitted to all public curves whose hardware and model are known. */
export const CALIBRATED: Coefficients = {
  tbot: [1.106, 0.4503, 0.03572, 0.009557, 0.02181, 2.01],
  ttft: [0.3033, 0.7893, 0.1117, 8.688],
};

/**
 * How much the seed counts, in measured levels: of its height, of how it goes with load, and of its shape. These did best, or
 * as well as any, with hardware that the coefficients were not fitted to; times three or a third they err by the same.
 */
export const SEED_LEVELS = { height: 0.1, slope: 4, shape: 0.1 } as const;

/**
 * A seed shrunk towards what was measured, in two steps. Each time is first moved to the seed's times exp(a + b·ln(n/16)), a and
 * b by least squares of the measured ratios' logarithms and a prior of no correction. Then T(n) = w₀ + w₁·√n + w₂·n, w ≥ 0, is
 * fitted to the measured levels and to levels of the moved seed that count together as much as `shape` of one: so many
 * measured levels leave nothing of the seed but where there are none.
 */
export function shrunk(
  seed: (inFlight: number) => SeedTimes,
  points: readonly LoadPoint[],
): (inFlight: number) => SeedTimes {
  if (points.length === 0) return seed;
  const towards = (name: keyof SeedTimes): ((inFlight: number) => number) => {
    const measured = points.map((point) => [point.inFlight, point[name]] as const);
    const moved = correction(measured.map(([inFlight, ms]) => [inFlight, ms / seed(inFlight)[name]]));
    const levels = SEEDED.map((inFlight) => [inFlight, seed(inFlight)[name] * moved(inFlight)] as const);
    const weights = nonNegativeLeastSquares(
      [...measured, ...levels].map(([inFlight, ms]) => inFlightFeatures(inFlight).map((feature) => feature / ms)),
      [...measured.map(() => 1), ...levels.map(() => SEED_LEVELS.shape / levels.length)],
    );
    return (inFlight) => inFlightFeatures(inFlight).reduce((sum, feature, i) => sum + weights[i]! * feature, 0);
  };
  const [ttft, tbot] = [towards("ttftMs"), towards("tbotMs")];
  return (inFlight) => ({ ttftMs: ttft(inFlight), tbotMs: tbot(inFlight) });
}

/** Requests in flight of a seed's levels. */
const SEEDED: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

function correction(ratios: readonly (readonly [inFlight: number, ratio: number])[]): (inFlight: number) => number {
  const sums = { one: SEED_LEVELS.height, x: 0, xx: SEED_LEVELS.slope, y: 0, xy: 0 };
  for (const [inFlight, ratio] of ratios) {
    const [x, y] = [Math.log(inFlight / MIDDLE), Math.log(ratio)];
    sums.one += 1;
    sums.x += x;
    sums.xx += x * x;
    sums.y += y;
    sums.xy += x * y;
  }
  const determinant = sums.one * sums.xx - sums.x * sums.x;
  const a = (sums.y * sums.xx - sums.xy * sums.x) / determinant;
  const b = (sums.xy * sums.one - sums.y * sums.x) / determinant;
  return (inFlight) => Math.exp(a + b * Math.log(inFlight / MIDDLE));
}

/** Requests in flight at which a change of slope changes nothing. */
const MIDDLE = 16;

/** What is known of a deployment that nobody has measured, or not at enough levels. */
export interface SeedRequest {
  readonly deployed: Deployed;
  /** For the profile: names of hardware, model and precision. */
  readonly sku: string;
  readonly model: string;
  readonly precision: string;
  /** Levels measured so far, none or more. */
  readonly points: readonly LoadPoint[];
}

/** A profile that is a guess: the same file as a fitted one, its source says what it stands on. */
export interface SeededProfile extends Omit<FittedProfile, "source" | "band"> {
  readonly band: { readonly ttftMs: Band; readonly tbotMs: Band };
  readonly source: {
    readonly kind: "seeded";
    readonly data: string;
    /** Levels measured. */
    readonly points: number;
    /** What the seed weighs, in measured levels. */
    readonly seedLevels: typeof SEED_LEVELS;
    /** Median error with so many levels on hardware that the coefficients were not fitted to, and that of nine in ten. */
    readonly expectedError: { readonly ttft: SeedError; readonly tbot: SeedError };
    /** Requests in flight between which it was measured; null = not at all. All else is the seed's. */
    readonly measured: { readonly inFlight: { readonly from: number; readonly to: number } } | null;
    readonly workFrom: "roofline";
    /** `medium` where enough was measured for a fit. */
    readonly confidence: "low" | "medium";
  };
}

export interface SeedError {
  readonly median: number;
  readonly ninety: number;
}

/**
 * By levels measured, over the public curves of five levels or more, each SKU's by coefficients of the others: as
 * `scripts/seed-error.ts` prints it.
 */
export const SEED_ERRORS: readonly { readonly points: number; readonly ttft: SeedError; readonly tbot: SeedError }[] = [
  { points: 0, ttft: { median: 0.44, ninety: 0.859 }, tbot: { median: 0.152, ninety: 0.36 } },
  { points: 1, ttft: { median: 0.179, ninety: 0.51 }, tbot: { median: 0.084, ninety: 0.207 } },
  { points: 2, ttft: { median: 0.124, ninety: 0.926 }, tbot: { median: 0.055, ninety: 0.163 } },
  { points: 3, ttft: { median: 0.09, ninety: 0.366 }, tbot: { median: 0.025, ninety: 0.073 } },
  { points: 4, ttft: { median: 0.084, ninety: 0.425 }, tbot: { median: 0.022, ninety: 0.101 } },
];

/** @throws GuidevaneError `bad_usage` where the memory has no room for a curve */
export function seedProfile({ deployed, sku, model, precision, points }: SeedRequest): SeededProfile {
  const { promptTokens, outputTokens, gpus } = deployed;
  const room = memoryHolds(deployed);
  if (room < LEVELS_LEAST)
    throw new GuidevaneError(
      "bad_usage",
      `${gpus} x ${sku}: the memory beside the weights holds ${Math.max(0, room).toFixed(1)} requests of ${promptTokens} + ${outputTokens} tokens; ${LEVELS_LEAST} are the fewest: more GPUs or a lower precision`,
    );
  const times = shrunk((inFlight) => rooflineTimes(deployed, CALIBRATED, inFlight), points);
  const levels = SEEDED.filter((inFlight) => inFlight <= room);
  const fitted = fitCurve({
    loop: "closed",
    outputTokens,
    points: levels.map((inFlight) => {
      const { ttftMs, tbotMs } = times(inFlight);
      const ratePerS = (1000 * inFlight) / (ttftMs + outputTokens * tbotMs);
      return {
        inFlight,
        ratePerS,
        offeredPerS: null,
        ttftMs,
        tbotMs,
        ttftP50Ms: null,
        ttftP99Ms: null,
        requests: null,
      };
    }),
  });
  const prefillMsPerTok = prefillMs(deployed, CALIBRATED) / promptTokens;
  const part = prefillPart(promptTokens, prefillMsPerTok, fitted.capacityRps);
  const error = SEED_ERRORS.findLast((each) => each.points <= points.length)!;
  const inFlight = points.map((point) => point.inFlight);
  return {
    profile: slug(`${gpus}x${sku} ${model} ${precision} seed ${promptTokens}x${outputTokens}`),
    sku: slug(`${gpus}x${sku}`),
    model,
    precision,
    reference: { promptTokens, outputTokens },
    work: workOf(part / promptTokens, (1 - part) / outputTokens),
    prefillMsPerTok: rounded(prefillMsPerTok),
    loop: "closed",
    capacityWps: rounded(fitted.capacityRps),
    ttftMs: roundedKnots(fitted.ttftMs),
    tbotMs: roundedKnots(fitted.tbotMs),
    band: { ttftMs: bandOf(fitted.ttftMs, error.ttft.ninety), tbotMs: bandOf(fitted.tbotMs, error.tbot.ninety) },
    source: {
      kind: "seeded",
      data: "a roofline of the hardware's and the model's published figures",
      points: points.length,
      seedLevels: SEED_LEVELS,
      expectedError: { ttft: error.ttft, tbot: error.tbot },
      measured: points.length === 0 ? null : { inFlight: { from: Math.min(...inFlight), to: Math.max(...inFlight) } },
      workFrom: "roofline",
      confidence: points.length < LEVELS_MIN ? "low" : "medium",
    },
  };
}

/** Levels of 1, 2 and 4. */
const LEVELS_LEAST = 4;

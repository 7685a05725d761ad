import type { Knots } from "@guidevane/core";
import { fitCurve } from "./fit-curve.ts";
import { type HeldOutError, leaveLevelsOut, leaveWorkloadOut } from "./held-out.ts";
import { deploymentName, type LoadCurve } from "./load-curve.ts";
import { type Band, bandOf, ninetieth, rounded, roundedKnots, slug } from "./profile-figures.ts";
import { upToSaturation } from "./saturation.ts";
import { tokenCosts } from "./token-costs.ts";

/** A profile as its file has it (CONTRACT's format, `docs/fleet-file.md`), fitted from measurements. */
export interface FittedProfile {
  readonly profile: string;
  readonly sku: string;
  readonly model?: string;
  readonly precision?: string;
  /** The measured workload: 1.0 unit of work. */
  readonly reference: { readonly promptTokens: number; readonly outputTokens: number };
  readonly work: { readonly prefillPerKtok: number; readonly decodePerKtok: number };
  readonly prefillMsPerTok: number;
  readonly loop: "open" | "closed";
  readonly capacityWps: number;
  readonly ttftMs: Knots;
  readonly tbotMs: Knots;
  readonly ttftP50Ms?: Knots;
  readonly ttftP99Ms?: Knots;
  readonly band?: { readonly ttftMs: Band; readonly tbotMs: Band };
  readonly source: FitSource;
}

/** What a fit stands on, so that nobody takes it for more than it is. */
export interface FitSource {
  readonly kind: "fitted";
  readonly data: string;
  readonly licence?: string;
  /** Load levels. */
  readonly points: number;
  /** Requests of the log that they were made of. */
  readonly requests?: number;
  /** Of a log: whether somebody said that the loop was open or closed, or it was seen from the requests. */
  readonly loop?: "stated" | "inferred";
  /** Of a log: part of its prompt tokens that were in the engine's cache. The reference request has the others. */
  readonly cachedPart?: number;
  /** What the times are: means, medians, or not said by the source. */
  readonly statistic: LoadCurve["statistic"];
  /** Mean relative error at a load level that was left out of the fit. */
  readonly heldOutError: Partial<Readonly<Record<keyof HeldOutError, number>>>;
  /** Mean relative error on this workload of a fit to the same deployment's most similar other one. */
  readonly otherWorkloadError: Partial<Readonly<Record<keyof HeldOutError, number>>>;
  /** Whether the highest rate was seen, more in flight bringing no more requests/s; if not, the capacity is extrapolated. */
  readonly saturation: "measured" | "extrapolated";
  /** Load levels past it, left out. */
  readonly pastSaturation: number;
  /** Where it was measured; outside the profile extrapolates. */
  readonly measured: MeasuredRange;
  /** Where the split of work between prompt and output comes from. */
  readonly workFrom: "workloads" | "prefill-time" | "requests";
  readonly confidence: Confidence;
}

export interface MeasuredRange {
  /** Utilisations. */
  readonly from: number;
  readonly to: number;
  readonly inFlight: Range;
  /** Of a log: between which nine of ten requests lie. */
  readonly promptTokens?: Range;
  readonly outputTokens?: Range;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * `high`: six levels or more, of 100 requests each where that is known, and held-out errors within 5 % (TBOT) and 12 %
 * (TTFT). `low`: errors beyond 15 % or 30 %, or too few levels to leave one out. `medium`: the rest.
 */
export type Confidence = "high" | "medium" | "low";

export interface FitContext {
  /** All curves of the file: those of the same deployment say what a token costs. */
  readonly curves: readonly LoadCurve[];
  readonly data: string;
  readonly licence?: string | undefined;
}

/** @throws RangeError on fewer levels than `LEVELS_MIN` */
export function fitProfile(measured: LoadCurve, context: FitContext): FittedProfile {
  const all = context.curves.map((each) => ({ each, ...upToSaturation(each) }));
  const { curve, saturationRps, past } = all.find(({ each }) => each === measured) ?? upToSaturation(measured);
  const { deployment, promptTokens, outputTokens, loop, log } = curve;
  const fitted = fitCurve(curve, saturationRps);
  const levels = leaveLevelsOut(curve, saturationRps);
  const tokens = tokenCosts(curve, fitted, all);
  const name = deploymentName(deployment);
  const hardware = deployment.gpuCount === null ? deployment.gpu : `${deployment.gpuCount}x${deployment.gpu}`;
  const spread = (of: "ttft" | "tbot"): number | null => ninetieth(levels.each.map((each) => each[of]!));
  const [ttftSpread, tbotSpread] = [spread("ttft"), spread("tbot")];
  return {
    profile: slug(`${name} ${Math.round(promptTokens)}x${Math.round(outputTokens)}`),
    sku: slug(hardware === "" ? "unknown" : hardware),
    ...(deployment.model === "" ? {} : { model: deployment.model }),
    ...(deployment.precision === "" ? {} : { precision: deployment.precision }),
    reference: { promptTokens, outputTokens },
    work: tokens.work,
    prefillMsPerTok: rounded(tokens.prefillMsPerTok),
    loop,
    capacityWps: rounded(fitted.capacityRps),
    ttftMs: roundedKnots(fitted.ttftMs),
    tbotMs: roundedKnots(fitted.tbotMs),
    ...(fitted.ttftP50Ms === null ? {} : { ttftP50Ms: roundedKnots(fitted.ttftP50Ms) }),
    ...(fitted.ttftP99Ms === null ? {} : { ttftP99Ms: roundedKnots(fitted.ttftP99Ms) }),
    ...(ttftSpread === null || tbotSpread === null
      ? {}
      : { band: { ttftMs: bandOf(fitted.ttftMs, ttftSpread), tbotMs: bandOf(fitted.tbotMs, tbotSpread) } }),
    source: {
      kind: "fitted",
      data: context.data,
      ...(context.licence === undefined ? {} : { licence: context.licence }),
      points: curve.points.length,
      ...(log === undefined ? {} : { requests: log.requests, loop: log.loop, cachedPart: log.cachedPart }),
      statistic: curve.statistic,
      heldOutError: known(levels.mean),
      otherWorkloadError: known(
        leaveWorkloadOut(
          curve,
          all.map((each) => each.curve),
        ),
      ),
      saturation: saturationRps === null ? "extrapolated" : "measured",
      pastSaturation: past.length,
      measured: {
        from: rounded(fitted.measured.from, 3),
        to: rounded(fitted.measured.to, 3),
        inFlight: { from: rounded(curve.points[0]!.inFlight, 3), to: rounded(curve.points.at(-1)!.inFlight, 3) },
        ...(log === undefined ? {} : { promptTokens: log.promptTokens, outputTokens: log.outputTokens }),
      },
      workFrom: tokens.from,
      confidence: confidenceOf(curve, levels.mean),
    },
  };
}

function confidenceOf({ points }: LoadCurve, { tbot, ttft }: HeldOutError): Confidence {
  if (tbot === null || ttft === null || tbot > 0.15 || ttft > 0.3) return "low";
  const enough = points.length >= 6 && points.every(({ requests }) => requests === null || requests >= 100);
  return enough && tbot <= 0.05 && ttft <= 0.12 ? "high" : "medium";
}

function known(errors: HeldOutError): FitSource["heldOutError"] {
  return Object.fromEntries(
    Object.entries(errors).flatMap(([name, error]) => (error === null ? [] : [[name, rounded(error, 4)]])),
  );
}

import { type Knots, valueAt } from "@guidevane/core";
import { type FittedCurve, fitCurve, LEVELS_MIN } from "./fit-curve.ts";
import { type HeldOutError, leaveLevelsOut, leaveWorkloadOut } from "./held-out.ts";
import { deploymentName, type LoadCurve } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";
import { upToSaturation } from "./saturation.ts";

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

interface Band {
  readonly low: Knots;
  readonly high: Knots;
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
  /** Whether the highest rate was seen, with more requests in flight bringing no more; if not, the capacity is extrapolated. */
  readonly saturation: "measured" | "extrapolated";
  /** Load levels past it, left out. */
  readonly pastSaturation: number;
  /** Where it was measured; outside the profile extrapolates. */
  readonly measured: Measured;
  /** Where the split of work between prompt and output comes from. */
  readonly workFrom: "workloads" | "prefill-time" | "requests";
  readonly confidence: Confidence;
}

export interface Measured {
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
 * `high`: six levels or more, of 100 requests each where that is known, and held-out errors within 5 % (TBOT) and 12 % (TTFT). `low`: errors beyond 15 % or 30 %, or
 * too few levels to leave one out. `medium`: the rest.
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
  const { curve, saturationRps, past } = upToSaturation(measured);
  const { deployment, promptTokens, outputTokens, loop, log } = curve;
  const fitted = fitCurve(curve, saturationRps);
  const levels = leaveLevelsOut(curve);
  const curves = context.curves.map((other) => (other === measured ? curve : upToSaturation(other).curve));
  const tokens = tokenCosts(curve, fitted, curves);
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
      otherWorkloadError: known(leaveWorkloadOut(curve, curves)),
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

interface TokenCosts {
  readonly work: FittedProfile["work"];
  readonly prefillMsPerTok: number;
  readonly from: FitSource["workFrom"];
}

/**
 * What a prompt token and an output token cost. Where the deployment was measured under several workloads, by least squares
 * of 1/capacity = prompt·α + output·β over them. From one alone: prefill is bound by arithmetic and costs a token the same
 * in a full batch as at rest, so its part of a request at capacity is promptTokens × the idle prefill time of a token ×
 * capacity; the rest is decoding.
 */
function tokenCosts(curve: LoadCurve, fitted: FittedCurve, curves: readonly LoadCurve[]): TokenCosts {
  const { promptTokens, outputTokens } = curve;
  const name = deploymentName(curve.deployment);
  const workloads = curves
    .filter((other) => other.points.length >= LEVELS_MIN && deploymentName(other.deployment) === name)
    .map((other) => ({ other, fit: other === curve ? fitted : fitCurve(other) }));
  const idleMs = (fit: FittedCurve): number => valueAt(fit.ttftMs, 0);
  const [, slopeMs] = nonNegativeLeastSquares(
    workloads.map(({ other, fit }) => [1 / idleMs(fit), other.promptTokens / idleMs(fit)]),
  );
  // One workload says nothing of what a request costs beside its tokens.
  const several = new Set(workloads.map(({ other }) => other.promptTokens)).size > 1;
  const seen = curve.log?.prefillMsPerTok ?? null;
  const prefillMsPerTok = seen ?? (several && slopeMs! > 0 ? slopeMs! : idleMs(fitted) / promptTokens);

  const ratios = new Set(workloads.map(({ other }) => other.promptTokens / other.outputTokens));
  if (ratios.size > 1) {
    const [prompt, output] = nonNegativeLeastSquares(
      workloads.map(({ other, fit }) => [other.promptTokens * fit.capacityRps, other.outputTokens * fit.capacityRps]),
    );
    const one = prompt! * promptTokens + output! * outputTokens;
    if (one > 0) return { work: workOf(prompt! / one, output! / one), prefillMsPerTok, from: "workloads" };
  }
  const share = Math.min(PREFILL_SHARE_MAX, (promptTokens * prefillMsPerTok * fitted.capacityRps) / 1000);
  const work = workOf(share / promptTokens, (1 - share) / outputTokens);
  return { work, prefillMsPerTok, from: seen === null ? "prefill-time" : "requests" };
}

/** An idle first token has more in it than prefill, so the estimate can pass the whole; some of a request is decoding. */
const PREFILL_SHARE_MAX = 0.9;

function workOf(prompt: number, output: number): FittedProfile["work"] {
  return { prefillPerKtok: rounded(prompt * 1000), decodePerKtok: rounded(output * 1000) };
}

function confidenceOf({ points }: LoadCurve, { tbot, ttft }: HeldOutError): Confidence {
  if (tbot === null || ttft === null || tbot > 0.15 || ttft > 0.3) return "low";
  const enough = points.length >= 6 && points.every(({ requests }) => requests === null || requests >= 100);
  return enough && tbot <= 0.05 && ttft <= 0.12 ? "high" : "medium";
}

function bandOf(knots: Knots, spread: number): Band {
  const scaled = (factor: number): Knots => knots.map(([at, ms]) => [at, rounded(ms * factor)]);
  return { low: scaled(Math.max(0, 1 - spread)), high: scaled(1 + spread) };
}

/** Null of none. */
function ninetieth(errors: readonly number[]): number | null {
  if (errors.length === 0) return null;
  const sorted = [...errors].sort((a, b) => a - b);
  return sorted[Math.ceil(0.9 * sorted.length) - 1]!;
}

function known(errors: HeldOutError): FitSource["heldOutError"] {
  return Object.fromEntries(
    Object.entries(errors).flatMap(([name, error]) => (error === null ? [] : [[name, rounded(error, 4)]])),
  );
}

/** To figures that a person reads, kept convex: a knot that rounding lifted above its neighbours' line is put on it. */
function roundedKnots(knots: Knots): Knots {
  const result: [number, number][] = [];
  let slope = 0;
  for (const [at, ms] of knots) {
    const last = result.at(-1);
    if (last === undefined) {
      result.push([at, rounded(ms)]);
      continue;
    }
    const width = at - last[0];
    const next = Math.max(rounded(ms), last[1] + slope * width);
    slope = (next - last[1]) / width;
    result.push([at, next]);
  }
  return result;
}

function rounded(value: number, digits = 6): number {
  return Number(value.toPrecision(digits));
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

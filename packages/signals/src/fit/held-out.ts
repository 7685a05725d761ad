import { fitCurve, LEVELS_MIN, predictAtInFlight, predictAtRate } from "./fit-curve.ts";
import { deploymentName, type LoadCurve } from "./load-curve.ts";

/** Relative errors, |predicted ÷ measured − 1|, as means over what was left out; null where nothing could be. */
export interface HeldOutError {
  readonly ttft: number | null;
  readonly ttftP50: number | null;
  readonly ttftP99: number | null;
  readonly tbot: number | null;
  readonly e2e: number | null;
}

const NOTHING: HeldOutError = { ttft: null, ttftP50: null, ttftP99: null, tbot: null, e2e: null };

/**
 * Error at each load level of a fit to the other levels, the first and the last one too: those are extrapolated.
 *
 * @param saturationRps of an open loop, as levels beyond say it, none of which is left out here; null = not known
 */
export function leaveLevelsOut(
  curve: LoadCurve,
  saturationRps: number | null = null,
): {
  readonly mean: HeldOutError;
  readonly each: readonly HeldOutError[];
} {
  if (curve.points.length <= LEVELS_MIN) return { mean: NOTHING, each: [] };
  // A closed loop's is the rate of a level that may be the one left out.
  const known = curve.loop === "open" ? saturationRps : null;
  const each = curve.points.map((left) => {
    const fitted = fitCurve({ ...curve, points: curve.points.filter((point) => point !== left) }, known);
    // By what the load was made of: the other would take the level's own time for known.
    const said =
      curve.loop === "closed"
        ? predictAtInFlight(fitted, curve.outputTokens, left.inFlight)
        : predictAtRate(fitted, curve.outputTokens, left.ratePerS);
    return errorsAt(left, curve.outputTokens, said);
  });
  return { mean: meanOf(each), each };
}

/**
 * Of times at the same requests in flight, by how many times as long a prompt is: a first token waits for more than its own
 * prompt, and prompts of the others share the steps that give the next ones. Of powers in tenths these err least over 374
 * pairs of measured workloads (22 and 13 %; in proportion and not at all, 38 and 20 %); the answers' length adds nothing.
 */
const TTFT_POWER = 0.7;
const TBOT_POWER = 0.1;

/**
 * Error on a whole workload of a fit to the same deployment's most similar other one, its times moved by the powers above of
 * the prompts' ratio.
 */
export function leaveWorkloadOut(curve: LoadCurve, all: readonly LoadCurve[]): HeldOutError {
  const name = deploymentName(curve.deployment);
  const others = all.filter(
    (other) => other !== curve && other.points.length >= LEVELS_MIN && deploymentName(other.deployment) === name,
  );
  const nearest = others.sort((a, b) => distance(a, curve) - distance(b, curve))[0];
  if (nearest === undefined) return NOTHING;
  const fitted = fitCurve(nearest);
  const longer = curve.promptTokens / nearest.promptTokens;
  return meanOf(
    curve.points.map((point) => {
      const { ttftMs, tbotMs, ttftP50Ms, ttftP99Ms } = predictAtInFlight(fitted, nearest.outputTokens, point.inFlight);
      const scaled = { ttftMs: ttftMs * longer ** TTFT_POWER, tbotMs: tbotMs * longer ** TBOT_POWER };
      return errorsAt(point, curve.outputTokens, {
        ...scaled,
        e2eMs: scaled.ttftMs + curve.outputTokens * scaled.tbotMs,
        ttftP50Ms: ttftP50Ms === null ? null : ttftP50Ms * longer ** TTFT_POWER,
        ttftP99Ms: ttftP99Ms === null ? null : ttftP99Ms * longer ** TTFT_POWER,
      });
    }),
  );
}

interface Times {
  readonly ttftMs: number;
  readonly tbotMs: number;
  readonly ttftP50Ms: number | null;
  readonly ttftP99Ms: number | null;
}

function errorsAt(measured: Times, outputTokens: number, predicted: Times & { readonly e2eMs: number }): HeldOutError {
  const error = (of: number | null, by: number | null): number | null =>
    of === null || by === null ? null : Math.abs(by / of - 1);
  return {
    ttft: error(measured.ttftMs, predicted.ttftMs),
    ttftP50: error(measured.ttftP50Ms, predicted.ttftP50Ms),
    ttftP99: error(measured.ttftP99Ms, predicted.ttftP99Ms),
    tbot: error(measured.tbotMs, predicted.tbotMs),
    e2e: error(measured.ttftMs + outputTokens * measured.tbotMs, predicted.e2eMs),
  };
}

function meanOf(errors: readonly HeldOutError[]): HeldOutError {
  const mean = (name: keyof HeldOutError): number | null => {
    const known = errors.map((each) => each[name]).filter((each) => each !== null);
    return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
  };
  return {
    ttft: mean("ttft"),
    ttftP50: mean("ttftP50"),
    ttftP99: mean("ttftP99"),
    tbot: mean("tbot"),
    e2e: mean("e2e"),
  };
}

/** How unlike two workloads are: by what factors their lengths differ. */
function distance(a: LoadCurve, b: LoadCurve): number {
  return Math.abs(Math.log(a.promptTokens / b.promptTokens)) + Math.abs(Math.log(a.outputTokens / b.outputTokens));
}

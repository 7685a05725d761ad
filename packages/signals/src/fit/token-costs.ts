import { valueAt } from "@guidevane/core";
import { type FittedCurve, fitCurve, LEVELS_MIN } from "./fit-curve.ts";
import type { FitSource, FittedProfile } from "./fit-profile.ts";
import { deploymentName, type LoadCurve } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";
import { prefillPart, workOf } from "./profile-figures.ts";
import type { Unsaturated } from "./saturation.ts";

export interface TokenCosts {
  readonly work: FittedProfile["work"];
  readonly prefillMsPerTok: number;
  readonly from: FitSource["workFrom"];
}

/**
 * What a prompt token and an output token cost. Where the deployment was measured under several workloads, by least squares
 * of 1/capacity = prompt·α + output·β over them. From one alone, by `prefillPart`; the rest is decoding.
 */
export function tokenCosts(curve: LoadCurve, fitted: FittedCurve, all: readonly Unsaturated[]): TokenCosts {
  const { promptTokens, outputTokens } = curve;
  const name = deploymentName(curve.deployment);
  const workloads = all
    .filter(({ curve: other }) => other.points.length >= LEVELS_MIN && deploymentName(other.deployment) === name)
    .map(({ curve: other, saturationRps }) => ({
      other,
      fit: other === curve ? fitted : fitCurve(other, saturationRps),
    }));
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
  const part = prefillPart(promptTokens, prefillMsPerTok, fitted.capacityRps);
  const work = workOf(part / promptTokens, (1 - part) / outputTokens);
  return { work, prefillMsPerTok, from: seen === null ? "prefill-time" : "requests" };
}

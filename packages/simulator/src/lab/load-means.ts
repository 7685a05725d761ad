import type { EngineParameters } from "./engine-parameters.ts";

export type Mechanism = Pick<
  EngineParameters,
  "maxRunning" | "stepMs" | "mixedStepMs" | "prefillFactor" | "overheadMs"
>;

/**
 * What reference requests meet on average at an engine of this mechanism, when they come as a Poisson stream of `perMs`.
 *
 * Those that decode share the processor, so that the stationary probability of n of them needs only the mean of the answers'
 * length, o tokens; τ(n) is the step, prompts being read or not by their parts of time:
 *
 *     p(n) = p(n − 1) · λ·o·τ(n) ÷ n
 *     TBOT = E[n] ÷ (λ·o)                                Little's law
 *     TTFT = overhead + Σ p(n)·(S + λS²/(2(1 − λS)))     S = readMs·factor(n): n changes slowly beside the reading of a prompt
 */
export function loadMeans(
  mechanism: Mechanism,
  readMs: number,
  outputTokens: number,
  perMs: number,
): { readonly ttftMs: number; readonly tbotMs: number } {
  const { maxRunning, prefillFactor, overheadMs } = mechanism;
  let weight = 1;
  let total = 0;
  let decoding = 0;
  let firstMs = 0;
  for (let n = 0; n <= maxRunning; n++) {
    const serviceMs = readMs * prefillFactor[n]!;
    const reading = Math.min(1, perMs * serviceMs);
    if (n > 0) weight *= (perMs * outputTokens * meanStepMs(mechanism, n, reading)) / n;
    const spare = Math.max(LEAST_SPARE, 1 - reading);
    total += weight;
    decoding += weight * n;
    firstMs += weight * (serviceMs + (perMs * serviceMs * serviceMs) / (2 * spare));
    if (weight < HUGE) continue;
    weight /= HUGE;
    total /= HUGE;
    decoding /= HUGE;
    firstMs /= HUGE;
  }
  return { ttftMs: overheadMs + firstMs / total, tbotMs: decoding / total / (perMs * outputTokens) };
}

/** ms a token while n decode, a prompt being read for that part of the time. */
export function meanStepMs({ stepMs, mixedStepMs }: Mechanism, n: number, reading: number): number {
  return 1 / ((1 - reading) / stepMs[n]! + reading / mixedStepMs[n]!);
}

/** While more decode than usual, prompts may come faster than they are read, but not for long enough to queue without end. */
const LEAST_SPARE = 0.05;
/** Weights are summed before their total is known. */
const HUGE = 1e100;

import type { GpuFacts, ModelFacts } from "./hardware-facts.ts";
import type { LoadCurve } from "./load-curve.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";

/**
 * Times of an engine from what its hardware can do at most. With n requests in flight, g GPUs, N parameters of which A are
 * active, a prompt of p and an answer of o tokens:
 *
 *     weights    W(n) = bytes of [A + (N − A)·(1 − (1 − A/N)ⁿ⁻¹)] ÷ (g · bandwidth)     experts touched by n tokens
 *     KV         K(n) = n · (p + o/2) · bytes of a token ÷ (g · bandwidth)
 *     prompt     P    = 2·A·p ÷ (g · FLOP/s)
 *     TBOT(n) = c₀·W + c₁·K + c₂·layers + c₃·layers·√n + c₄·layers·[g > 1] + c₅·n·P/o
 *     TTFT(n) = d₀·layers + d₁·P + d₂·n·P + d₃·TBOT
 *
 * The coefficients (1 = as fast as the maker says, ms for the layers) are fitted to measured curves of other hardware.
 */
export interface Deployed {
  readonly gpu: GpuFacts;
  readonly gpus: number;
  readonly model: ModelFacts;
  readonly weightBytes: number;
  readonly kvBytes: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface Coefficients {
  readonly tbot: readonly number[];
  readonly ttft: readonly number[];
}

export interface SeedTimes {
  readonly ttftMs: number;
  readonly tbotMs: number;
}

export function rooflineTimes(deployed: Deployed, { tbot, ttft }: Coefficients, inFlight: number): SeedTimes {
  const parts = partsOf(deployed, inFlight);
  const tbotMs = dot(tbot, tbotFeatures(parts));
  return { tbotMs, ttftMs: dot(ttft, ttftFeatures(parts, tbotMs)) };
}

/** Requests of this shape that the memory holds beside the weights. */
export function memoryHolds({ gpu, gpus, model, weightBytes, kvBytes, promptTokens, outputTokens }: Deployed): number {
  const freeBytes = MEMORY_USED * gpu.memoryBytes * gpus - model.parameters * weightBytes;
  return freeBytes / ((promptTokens + outputTokens) * model.kvNumbersPerToken * kvBytes);
}

/** Engines leave the rest to activations. */
const MEMORY_USED = 0.9;

/** What reading the prompt takes of the engine's time. */
export function prefillMs(deployed: Deployed, { tbot }: Coefficients): number {
  return tbot[READING]! * partsOf(deployed, 1).promptMs;
}

/** Place of the prompt's reading among what TBOT is made of. */
const READING = 5;

/** Coefficients that meet measured curves best, by least squares of relative errors. */
export function calibrate(
  measured: readonly { readonly deployed: Deployed; readonly points: LoadCurve["points"] }[],
): Coefficients {
  const rows = measured.flatMap(({ deployed, points }) =>
    points.map((point) => ({ point, parts: partsOf(deployed, point.inFlight) })),
  );
  const tbot = nonNegativeLeastSquares(
    rows.map(({ point, parts }) => tbotFeatures(parts).map((feature) => feature / point.tbotMs)),
  );
  const ttft = nonNegativeLeastSquares(
    rows.map(({ point, parts }) =>
      ttftFeatures(parts, dot(tbot, tbotFeatures(parts))).map((feature) => feature / point.ttftMs),
    ),
  );
  return { tbot, ttft };
}

interface Parts {
  readonly inFlight: number;
  readonly weightsMs: number;
  readonly kvMs: number;
  readonly promptMs: number;
  readonly layers: number;
  readonly isSplit: boolean;
  readonly outputTokens: number;
}

function partsOf(deployed: Deployed, inFlight: number): Parts {
  const { gpu, gpus, model, weightBytes, kvBytes, promptTokens, outputTokens } = deployed;
  const { parameters, activeParameters: active, layers, kvNumbersPerToken } = model;
  const bytesPerMs = (gpu.bytesPerS * gpus) / 1000;
  const touched = active + (parameters - active) * (1 - (1 - active / parameters) ** Math.max(0, inFlight - 1));
  const flops = weightBytes <= 1 && gpu.fp8Flops !== null ? gpu.fp8Flops : gpu.bf16Flops;
  return {
    inFlight,
    weightsMs: (touched * weightBytes) / bytesPerMs,
    kvMs: (inFlight * (promptTokens + outputTokens / 2) * kvNumbersPerToken * kvBytes) / bytesPerMs,
    promptMs: (1000 * 2 * active * promptTokens) / (flops * gpus),
    layers,
    isSplit: gpus > 1,
    outputTokens,
  };
}

function tbotFeatures({ inFlight, weightsMs, kvMs, promptMs, layers, isSplit, outputTokens }: Parts): number[] {
  const readingMs = (inFlight * promptMs) / outputTokens;
  return [weightsMs, kvMs, layers, layers * Math.sqrt(inFlight), isSplit ? layers : 0, readingMs];
}

function ttftFeatures({ inFlight, promptMs, layers }: Parts, tbotMs: number): number[] {
  return [layers, promptMs, inFlight * promptMs, tbotMs];
}

function dot(weights: readonly number[], features: readonly number[]): number {
  return features.reduce((sum, feature, i) => sum + weights[i]! * feature, 0);
}

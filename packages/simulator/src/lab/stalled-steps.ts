import type { EngineParameters } from "./engine-parameters.ts";
import { loadMeans, type Mechanism, meanStepMs } from "./load-means.ts";
import { type Means, trial } from "./trial.ts";

/** Requests at one rate, and what they should meet. */
export interface Target extends Means {
  readonly perMs: number;
}

interface Reference {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * The mechanism of an engine that reads a prompt in one step with everybody's next token, so that answers stand still
 * meanwhile: a mixed step takes as long as the reading. Where prompts take as long as answers, that is most of what load does
 * to the time between tokens.
 *
 * For each count of decoding requests the step and the prefill factor are corrected by the errors of all loads, each weighing as
 * much as it has that count. `loadMeans` takes reading and decoding as independent, which here they are not; so by turns its
 * targets are moved by what a trial of the mechanism differs from them.
 */
export function stalling(
  start: Mechanism,
  targets: readonly Target[],
  readMs: number,
  reference: Reference,
  parametersOf: (mechanism: Mechanism) => EngineParameters,
): EngineParameters {
  let aims = targets;
  let best = { error: Number.POSITIVE_INFINITY, parameters: parametersOf(start) };
  for (let turn = 0; turn < TURNS; turn++) {
    const parameters = parametersOf(meeting(start, aims, readMs, reference.outputTokens));
    const seen = targets.map(({ perMs }) => trial(parameters, reference, perMs));
    const error = errorOf(seen, targets);
    if (error < best.error) best = { error, parameters };
    aims = aims.map((aim, at) => moved(aim, targets[at]!, seen[at]!, start.overheadMs, readMs));
  }
  return best.parameters;
}

/** The largest relative difference in the time between tokens. */
export function tbotError(parameters: EngineParameters, targets: readonly Target[], reference: Reference): number {
  return targets.reduce((most, { perMs, tbotMs }) => {
    return Math.max(most, Math.abs(trial(parameters, reference, perMs).tbotMs / tbotMs - 1));
  }, 0);
}

function errorOf(seen: readonly Means[], targets: readonly Target[]): number {
  return seen.reduce((sum, { ttftMs, tbotMs }, at) => {
    const target = targets[at]!;
    return sum + Math.log(tbotMs / target.tbotMs) ** 2 + Math.log(ttftMs / target.ttftMs) ** 2;
  }, 0);
}

function moved(aim: Target, target: Target, seen: Means, overheadMs: number, readMs: number): Target {
  const step = (wanted: number, found: number) =>
    Math.min(MOST_MOVE, Math.max(1 / MOST_MOVE, wanted / found)) ** MOVE_PART;
  const reading = (ttftMs: number) => Math.max(LEAST_MS, ttftMs - overheadMs);
  const readingMs = reading(aim.ttftMs) * step(reading(target.ttftMs), reading(seen.ttftMs));
  return {
    perMs: aim.perMs,
    ttftMs: overheadMs + Math.max(readMs / 2, readingMs),
    tbotMs: aim.tbotMs * step(target.tbotMs, seen.tbotMs),
  };
}

/** The mechanism whose means by `loadMeans` come nearest to the aims. */
function meeting(start: Mechanism, aims: readonly Target[], readMs: number, outputTokens: number): Mechanism {
  const size = start.maxRunning + 1;
  const stepMs = Float64Array.from(start.stepMs);
  const prefillFactor = Float64Array.from(start.prefillFactor);
  const present = (): Mechanism => ({
    ...start,
    stepMs,
    prefillFactor,
    mixedStepMs: stepMs.map((ms, n) => Math.max(ms, readMs * prefillFactor[n]!)),
  });
  for (let round = 0; round < ROUNDS; round++) {
    const mechanism = present();
    const steps = new Correction(size);
    const reading = new Correction(size);
    for (const { perMs, ttftMs, tbotMs } of aims) {
      const parts = partsOf(mechanism, readMs, outputTokens, perMs);
      const means = loadMeans(mechanism, readMs, outputTokens, perMs);
      const decoding = parts.reduce((sum, part, n) => sum + n * part, 0);
      const waited = (ttftMs - start.overheadMs) / Math.max(LEAST_MS, means.ttftMs - start.overheadMs);
      for (const [n, part] of parts.entries()) {
        steps.add(n, (n * part) / decoding, Math.log(tbotMs / means.tbotMs));
        if (waited > 0) reading.add(n, part, Math.log(waited));
      }
    }
    steps.apply(stepMs, STEP_PART);
    reading.apply(prefillFactor, READ_PART);
    stepMs[0] = stepMs[1]!;
    for (let n = 1; n < size; n++) {
      prefillFactor[n] = Math.max(prefillFactor[n]!, prefillFactor[n - 1]!);
      // More requests take no less time, and get no fewer tokens in all.
      if (n > 1) stepMs[n] = Math.min(Math.max(stepMs[n]!, stepMs[n - 1]!), (stepMs[n - 1]! * n) / (n - 1));
    }
  }
  return present();
}

/** Part of the time in which so many decode, by their number. */
function partsOf(mechanism: Mechanism, readMs: number, outputTokens: number, perMs: number): Float64Array {
  const parts = new Float64Array(mechanism.maxRunning + 1);
  parts[0] = 1;
  let total = 1;
  for (let n = 1; n < parts.length; n++) {
    const reading = Math.min(1, perMs * readMs * mechanism.prefillFactor[n]!);
    parts[n] = (parts[n - 1]! * perMs * outputTokens * meanStepMs(mechanism, n, reading)) / n;
    total += parts[n]!;
  }
  return parts.map((part) => part / total);
}

/** Weighted mean errors, logarithms, by count of decoding requests. */
class Correction {
  readonly #sum: Float64Array;
  readonly #weight: Float64Array;

  constructor(size: number) {
    this.#sum = new Float64Array(size);
    this.#weight = new Float64Array(size);
  }

  add(n: number, weight: number, error: number): void {
    this.#sum[n]! += weight * error;
    this.#weight[n]! += weight;
  }

  apply(table: Float64Array, part: number): void {
    for (let n = 0; n < table.length; n++)
      if (this.#weight[n]! > LEAST_WEIGHT) table[n]! *= Math.exp((part * this.#sum[n]!) / this.#weight[n]!);
  }
}

const TURNS = 6;
const ROUNDS = 80;
/** Parts of an error that a round or a turn takes away; all of it would swing. */
const STEP_PART = 0.5;
const READ_PART = 0.3;
const MOVE_PART = 0.7;
/** A trial near saturation can be far off by chance. */
const MOST_MOVE = 1.5;
const LEAST_WEIGHT = 1e-6;
const LEAST_MS = 1e-6;

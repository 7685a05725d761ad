import { type Profile, valueAt } from "@guidevane/core";

/** What one replica of an engine is like, for `BatchingEngine`. */
export interface EngineParameters {
  /** Requests that decode at once, at most; the others wait. */
  readonly maxRunning: number;
  /** ms of a decode step by how many requests decode (index 0..maxRunning) while no prompt is being read. */
  readonly stepMs: Float64Array;
  /** The same while one is: prompts are read in chunks that share their steps with decoding. */
  readonly mixedStepMs: Float64Array;
  /** By how many requests decode: how many times as long as alone the reading of a prompt takes. */
  readonly prefillFactor: Float64Array;
  /** ms before a first token that keep nobody else waiting. */
  readonly overheadMs: number;
  /** ms that reading a prompt keeps the engine to itself: `fixedMs` + `msPerTok`·(uncached tokens), at least `leastMs`. */
  readonly prefill: { readonly fixedMs: number; readonly msPerTok: number; readonly leastMs: number };
  /** Tokens of one block of the KV memory, as traces count blocks. */
  readonly blockTokens: number;
  /** KV memory in blocks; infinite = never full. */
  readonly kvBlocks: number;
  /** Work units per 1,000 uncached prompt tokens and per 1,000 output tokens. */
  readonly work: { readonly prefillPerKtok: number; readonly decodePerKtok: number };
}

export interface KvMemory {
  readonly blockTokens: number;
  /** Of one replica. */
  readonly kvTokens: number;
}

/**
 * A profile says what the mean TTFT and TBOT are at each load; a mechanism says why. This finds the mechanism whose means
 * are the profile's under Poisson arrivals of reference requests (p prompt, o output tokens), at each knot ρ, λ = ρ·U:
 *
 *     decoding          B = λ·o·TBOT(ρ)                                   Little's law
 *     reading prompts   TTFT(ρ) − overhead = S + λS²/(2(1 − λS))          M/D/1 (Pollaczek and Khinchine), solved for S
 *     step              TBOT(ρ) at the index N = B + e·λS                 e: what reading a prompt weighs in decoders,
 *                                                                          by the profile's own work per token
 *
 * S(B) ÷ S(0) is then the prefill factor and TBOT(N) the step time. Beyond ρ = 1 steps grow in proportion, so that the
 * engine does no more than its capacity. Requests of another shape load both by their tokens.
 *
 * @param capacityWps of one replica
 */
export function engineParameters(profile: Profile, capacityWps: number, memory: KvMemory): EngineParameters {
  const { reference, work } = profile;
  const idleTtftMs = valueAt(profile.ttftMs, 0);
  const idleTbotMs = valueAt(profile.tbotMs, 0);
  const readMs = Math.min(
    Math.max(profile.prefillMsPerTok * reference.promptTokens, LEAST_READ_PART * idleTtftMs),
    idleTtftMs,
  );
  const overheadMs = idleTtftMs - readMs;
  const readerWeight = weightOfReader(profile, readMs, idleTbotMs);

  const loads = [...new Set([0, ...profile.ttftMs.map(([rho]) => rho), ...profile.tbotMs.map(([rho]) => rho), 1])]
    .filter((rho) => rho <= 1)
    .sort((a, b) => a - b);
  const knots = loads.map((rho) => {
    const perMs = (rho * capacityWps) / 1000;
    const tbotMs = valueAt(profile.tbotMs, rho);
    const decoding = perMs * reference.outputTokens * tbotMs;
    const serviceMs = serviceOf(Math.max(valueAt(profile.ttftMs, rho) - overheadMs, readMs), perMs);
    return { decoding, tbotMs, factor: serviceMs / readMs, index: decoding + readerWeight * perMs * serviceMs };
  });

  const maxRunning = Math.max(LEAST_RUNNING, Math.ceil(ROOM_ABOVE_FULL * knots.at(-1)!.decoding));
  const steps = knots.map(({ index, tbotMs }) => [index, tbotMs] as const);
  const factors = knots.map(({ decoding, factor }) => [decoding, factor] as const);
  const table = (points: readonly (readonly [number, number])[], offset: number): Float64Array =>
    Float64Array.from({ length: maxRunning + 1 }, (_, running) => through(points, running + offset));
  return {
    maxRunning,
    stepMs: table(steps, 0),
    mixedStepMs: table(steps, readerWeight),
    prefillFactor: table(factors, 0),
    overheadMs,
    prefill: {
      fixedMs: readMs - profile.prefillMsPerTok * reference.promptTokens,
      msPerTok: profile.prefillMsPerTok,
      leastMs: LEAST_PREFILL_PART * readMs,
    },
    blockTokens: memory.blockTokens,
    kvBlocks: Math.floor(memory.kvTokens / memory.blockTokens),
    work,
  };
}

/** Of a profile whose tokens take no time at all, so much of the idle TTFT still is reading: something must queue. */
const LEAST_READ_PART = 0.3;
/** A prompt that is all in the cache still takes a step. */
const LEAST_PREFILL_PART = 0.02;
const LEAST_RUNNING = 4;
/** Engines hold more requests than their full load needs; the rest of an overload waits outside the batch. */
const ROOM_ABOVE_FULL = 1.5;

/** How many decoding requests do as much work in a ms as the reading of the reference prompt does. */
function weightOfReader({ reference, work }: Profile, readMs: number, idleTbotMs: number): number {
  const readPerMs = (work.prefillPerKtok * reference.promptTokens) / 1000 / readMs;
  const decodePerMs = work.decodePerKtok / 1000 / idleTbotMs;
  return decodePerMs > 0 ? readPerMs / decodePerMs : 1;
}

/** The service time S of an M/D/1 queue whose mean time in system at `perMs` arrivals is `systemMs`. */
function serviceOf(systemMs: number, perMs: number): number {
  if (perMs === 0) return systemMs;
  // T = S + λS²/(2(1 − λS))  ⇔  λS² − 2(1 + λT)S + 2T = 0, the smaller root.
  const half = 1 + perMs * systemMs;
  return (half - Math.sqrt(half * half - 2 * perMs * systemMs)) / perMs;
}

/** Piecewise linear, and in proportion beyond the last point. */
function through(points: readonly (readonly [number, number])[], at: number): number {
  const last = points.at(-1)!;
  if (at >= last[0]) return last[0] > 0 ? (last[1] * at) / last[0] : last[1];
  return valueAt(points, at);
}

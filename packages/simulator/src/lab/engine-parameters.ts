import { type Profile, valueAt } from "@guidevane/core";
import { loadMeans, type Mechanism, meanStepMs } from "./load-means.ts";
import { stalling, tbotError } from "./stalled-steps.ts";

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
 * are the profile's under Poisson arrivals of reference requests (p prompt, o output tokens), at each knot ρ, λ = ρ·U. It
 * begins as if the number that decode never varied:
 *
 *     decoding          B = λ·o·TBOT(ρ)                                   Little's law
 *     reading prompts   TTFT(ρ) − overhead = S + λS²/(2(1 − λS))          M/D/1 (Pollaczek and Khinchine), solved for S
 *     step              TBOT(ρ) at the index N = B + e·λS                 e: what reading a prompt weighs in decoders,
 *                                                                          by the profile's own work per token
 *
 * S(B) ÷ S(0) is then the prefill factor and TBOT(N) the step time. But the number does vary, the more so the smaller it
 * is, and so does whether a prompt is read: steps and reading times around each B are corrected until `loadMeans` gives the
 * profile's. Where that fails, reading is taken to stall all answers (`stalling`). Beyond ρ = 1 steps grow in proportion, so that the engine does no more than its capacity. Requests of another shape
 * load both by their tokens.
 *
 * @param capacityWps of one replica
 */
export function engineParameters(profile: Profile, capacityWps: number, memory: KvMemory): EngineParameters {
  const byCapacity = known.get(profile) ?? new Map<number, EngineParameters>();
  known.set(profile, byCapacity);
  const found = byCapacity.get(capacityWps) ?? parametersFor(profile, capacityWps);
  byCapacity.set(capacityWps, found);
  const { blockTokens, kvTokens } = memory;
  return { ...found, blockTokens, kvBlocks: Math.floor(kvTokens / blockTokens) };
}

/** Found once for a profile at a capacity: every start of an emulated engine asks. */
const known = new WeakMap<Profile, Map<number, EngineParameters>>();

/** With a memory that is never full. */
function parametersFor(profile: Profile, capacityWps: number): EngineParameters {
  const { reference } = profile;
  const loads = loadsOf(profile, capacityWps);
  const idle = loads[0]!;
  const readMs = readingMs(profile, loads);
  const overheadMs = idle.ttftMs - readMs;
  const readerWeight = weightOfReader(profile, readMs, idle.tbotMs);
  const decodingAt = ({ perMs, tbotMs }: Load): number => perMs * reference.outputTokens * tbotMs;
  // A request alone takes what the profile says of an idle engine, as far as the first knot leaves room for one.
  const alone = Math.min(1, decodingAt(loads[1]!) / 2);
  const knots = loads.map((load) => {
    const { perMs, ttftMs } = load;
    const decoding = Math.max(alone, decodingAt(load));
    const serviceMs = readMs === 0 ? 0 : serviceOf(Math.max(ttftMs - overheadMs, readMs), perMs);
    const index = decoding + readerWeight * perMs * serviceMs;
    return { ...load, decoding, index, factor: readMs === 0 ? 1 : serviceMs / readMs };
  });
  const maxRunning = Math.max(LEAST_RUNNING, Math.ceil(ROOM_ABOVE_FULL * knots.at(-1)!.decoding));
  const steps = knots.map(({ index, tbotMs }) => [index, tbotMs] as const);
  const table = (points: Points, offset: number): Float64Array =>
    Float64Array.from({ length: maxRunning + 1 }, (_, running) => through(points, running + offset));
  const uncorrected = {
    maxRunning,
    stepMs: table(steps, 0),
    mixedStepMs: table(steps, readerWeight),
    prefillFactor: table(
      knots.map(({ decoding, factor }) => [decoding, factor] as const),
      0,
    ),
    overheadMs,
  };
  const { promptTokens } = reference;
  const msPerTok = Math.min(profile.prefillMsPerTok, readMs / promptTokens);
  const parametersOf = (mechanism: Mechanism): EngineParameters => ({
    ...mechanism,
    prefill: { fixedMs: readMs - msPerTok * promptTokens, msPerTok, leastMs: LEAST_PREFILL_PART * readMs },
    blockTokens: 1,
    kvBlocks: Number.POSITIVE_INFINITY,
    work: profile.work,
  });
  const sharing = parametersOf(corrected(uncorrected, knots, readMs, reference.outputTokens));
  const below = (rho: number) => knots.slice(1).filter(({ perMs }) => perMs <= (rho * capacityWps) / 1000);
  const sharingError = tbotError(sharing, below(JUDGED_UP_TO), reference);
  if (sharingError <= NEAR || readMs === 0) return sharing;
  const stalled = stalling(uncorrected, below(MET_UP_TO), readMs, reference, parametersOf);
  return tbotError(stalled, below(JUDGED_UP_TO), reference) < sharingError ? stalled : sharing;
}

/** A mechanism whose time between tokens is within this of the profile's needs no other. */
const NEAR = 0.15;
/** Loads at which chance leaves a trial's mean within some per cent, and loads that a mechanism has to meet. */
const JUDGED_UP_TO = 0.7;
const MET_UP_TO = 0.9;
/** Tokens take some time at every engine, whatever its profile says. */
const LEAST_STEP_MS = 1e-3;
/** Of a profile whose prompt tokens take no time at all, so much of the idle TTFT still is reading: something must queue. */
const LEAST_READ_PART = 0.3;
/** At full load an engine reads for no more than so much of its time. */
const MOST_READING = 0.8;
/** A prompt that is all in the cache still takes a step. */
const LEAST_PREFILL_PART = 0.02;
const LEAST_RUNNING = 4;
/** Engines hold more requests than their full load needs; the rest of an overload waits outside the batch. */
const ROOM_ABOVE_FULL = 1.5;
/** The error shrinks by about a third a round; larger steps swing. */
const ROUNDS = 40;
const CORRECTION = 0.3;

type Points = readonly (readonly [number, number])[];

/** Reference requests at one knot of the profile, and what they should meet. */
interface Load {
  readonly perMs: number;
  readonly ttftMs: number;
  readonly tbotMs: number;
}

interface Knot extends Load {
  /** How many decode on average. */
  readonly decoding: number;
  readonly factor: number;
}

/** From idle to full. */
function loadsOf(profile: Profile, capacityWps: number): Load[] {
  return [...new Set([0, ...profile.ttftMs.map(([rho]) => rho), ...profile.tbotMs.map(([rho]) => rho), 1])]
    .filter((rho) => rho <= 1)
    .sort((a, b) => a - b)
    .map((rho) => ({
      perMs: (rho * capacityWps) / 1000,
      ttftMs: valueAt(profile.ttftMs, rho),
      tbotMs: Math.max(valueAt(profile.tbotMs, rho), LEAST_STEP_MS),
    }));
}

/**
 * ms for which the reference prompt keeps an idle engine to itself: what the profile says its tokens take, but never so
 * long that the queue for it alone would make first tokens later than the profile does.
 */
function readingMs({ prefillMsPerTok, reference }: Profile, loads: readonly Load[]): number {
  const idleMs = loads[0]!.ttftMs;
  const longest = Math.min(Math.max(prefillMsPerTok * reference.promptTokens, LEAST_READ_PART * idleMs), idleMs);
  return loads.reduce((ms, { perMs, ttftMs }) => {
    const waitMs = ttftMs - idleMs;
    if (perMs === 0) return ms;
    // λS²/(2(1 − λS)) = W, solved for S.
    const fits = waitMs > 0 ? waitMs * (Math.sqrt(1 + 2 / (waitMs * perMs)) - 1) : Number.POSITIVE_INFINITY;
    return Math.min(ms, fits, MOST_READING / perMs);
  }, longest);
}

/** The mechanism with steps and reading times multiplied, around each knot, by what brings its means to the knot's. */
function corrected(mechanism: Mechanism, knots: readonly Knot[], readMs: number, outputTokens: number): Mechanism {
  const last = knots.length - 1;
  const full = knots[last]!;
  const steps = knots.map(() => 1);
  const reading = knots.map(() => 1);
  const times = (table: Float64Array, factors: readonly number[]): Float64Array => {
    const points = knots.map(({ decoding }, at) => [decoding, factors[at]!] as const);
    return table.map((value, n) => value * (n < full.decoding ? valueAt(points, n) : factors[last]!));
  };
  const apply = (): Mechanism => ({
    ...mechanism,
    stepMs: times(mechanism.stepMs, steps),
    mixedStepMs: times(mechanism.mixedStepMs, steps),
    prefillFactor: times(mechanism.prefillFactor, reading),
  });
  const stepAt = (present: Mechanism, at: number): number => {
    const { decoding, perMs, factor } = knots[at]!;
    return meanStepMs(present, Math.round(decoding), Math.min(1, perMs * readMs * factor * reading[at]!));
  };
  let present = mechanism;
  for (let round = 0; round < ROUNDS; round++) {
    for (let at = 1; at < last; at++) {
      const knot = knots[at]!;
      const means = loadMeans(present, readMs, outputTokens, knot.perMs);
      steps[at]! *= (knot.tbotMs / means.tbotMs) ** CORRECTION;
      const waited = (knot.ttftMs - mechanism.overheadMs) / (means.ttftMs - mechanism.overheadMs);
      // Only ever faster: one that reads more slowly than its own queue allows would never end.
      if (waited > 0) reading[at] = Math.min(1, reading[at]! * waited ** CORRECTION);
    }
    // At full load means have no say, since the queue would have no end: there the engine does its capacity.
    reading[last] = reading[last - 1]!;
    steps[last]! *= full.tbotMs / stepAt(present, last);
    present = apply();
    // More requests never get fewer tokens in all: else the engine would have two states at one load.
    let most = Number.POSITIVE_INFINITY;
    for (let at = last; at > 0; at--) {
      const rate = knots[at]!.decoding / stepAt(present, at);
      if (rate > most) steps[at]! *= rate / most;
      else most = rate;
    }
    present = apply();
  }
  return present;
}

/** How many decoding requests do as much work in a ms as the reading of the reference prompt does. */
function weightOfReader({ reference, work }: Profile, readMs: number, idleTbotMs: number): number {
  if (readMs === 0) return 0;
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
function through(points: Points, at: number): number {
  const last = points.at(-1)!;
  if (at >= last[0]) return last[0] > 0 ? (last[1] * at) / last[0] : last[1];
  return valueAt(points, at);
}

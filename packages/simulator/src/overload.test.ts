import { GENERIC_PROFILE, ManualClock, type Profile, seededRandom, valueAt } from "@guidevane/core";
import { Admission, type AdmissionClass } from "@guidevane/guard";
import { describe, expect, it } from "vitest";
import { EngineModel } from "./engine-model.ts";
import { NO_BLOCKS } from "./prompt-blocks.ts";

const PROFILE: Profile = { ...GENERIC_PROFILE, capacityWps: 12.5 };
const ENGINES = 4;
const CAPACITY_RPS = ENGINES * PROFILE.capacityWps;
const SIZE = PROFILE.reference;
const HIGH_RPS = 0.3 * CAPACITY_RPS;
const BEFORE = 0.94;
const OVERLOAD = 1.5;
const ONSET_MS = 60_000;
const END_MS = 120_000;

const answerMs = (utilisation: number): number =>
  valueAt(PROFILE.ttftMs, utilisation) + SIZE.outputTokens * valueAt(PROFILE.tbotMs, utilisation);

/** As a plan for the load before: 1.25 × what the class's part of the engines holds at full load. */
function classOf(name: string, priority: number, rps: number): AdmissionClass {
  const seconds = answerMs(0.95) / 1000;
  const streamLimit = 1.25 * (rps / BEFORE) * seconds;
  return { name, model: "m", priority, streamLimit, work: 1, streamWps: 1 / seconds, engineLimit: 1e9 };
}

const NAMES = ["high", "low"] as const;

/** Two classes of Poisson arrivals at four engines, the fewer streams of two; the low one grows until all is 1.5 × capacity. */
function run(seed: number) {
  const random = seededRandom(seed);
  const clock = new ManualClock();
  const limits = { maxStreams: 1e9, queue: 0, queueMs: 0 };
  const admission = new Admission(clock, limits);
  const lowRps = (nowMs: number): number => (nowMs < ONSET_MS ? BEFORE : OVERLOAD) * CAPACITY_RPS - HIGH_RPS;
  admission.adopt([classOf("high", 10, HIGH_RPS), classOf("low", 0, lowRps(0))], limits);
  const engines = Array.from({ length: ENGINES }, () => new EngineModel({ profile: PROFILE, clock }));
  const streams = new Float64Array(ENGINES);
  const seen = {
    before: [] as number[],
    during: [] as number[],
    high: 0,
    highAnswered: 0,
    answered: 0,
    firstShedMs: Number.POSITIVE_INFINITY,
  };
  const arriveNext = (subject: 0 | 1): void => {
    const rps = subject === 0 ? HIGH_RPS : lowRps(clock.nowMs());
    clock.after((-Math.log(1 - random()) * 1000) / rps, () => arrive(subject));
  };
  const arrive = (subject: 0 | 1): void => {
    arriveNext(subject);
    const askedMs = clock.nowMs();
    const isHigh = subject === 0;
    const during = askedMs >= ONSET_MS;
    if (isHigh && during) seen.high += 1;
    if (admission.ask(NAMES[subject], null).kind !== "admitted") {
      if (during) seen.firstShedMs = Math.min(seen.firstShedMs, askedMs - ONSET_MS);
      return;
    }
    const [one, other] = [Math.floor(random() * ENGINES), Math.floor(random() * ENGINES)];
    const engine = streams[one]! <= streams[other]! ? one : other;
    streams[engine]! += 1;
    if (isHigh && during) seen.highAnswered += 1;
    const ended = (): void => {
      streams[engine]! -= 1;
      admission.leave(NAMES[subject]);
      if (clock.nowMs() >= ONSET_MS) seen.answered += 1;
      // The engines fill up for a while at first.
      if (isHigh && askedMs >= ONSET_MS / 3) seen[during ? "during" : "before"].push(clock.nowMs() - askedMs);
    };
    engines[engine]!.take({ ...SIZE, blocks: NO_BLOCKS, key: 0 }, { first() {}, ended });
  };
  arriveNext(0);
  arriveNext(1);
  clock.advance(END_MS);
  return seen;
}

const p99 = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(0.99 * values.length)]!;

describe("1.5 times as much as the engines can do, the high priority being 0.3 of it", () => {
  it.each([1, 2, 3, 4])("costs the low priority alone, from when the engines are full (seed %i)", (seed) => {
    const { before, during, high, highAnswered, answered, firstShedMs } = run(seed);
    expect(highAnswered / high).toBeGreaterThanOrEqual(0.99);
    expect(p99(during) / p99(before)).toBeLessThanOrEqual(1.2);
    expect(answered / ((END_MS - ONSET_MS) / 1000) / CAPACITY_RPS).toBeGreaterThanOrEqual(0.95);
    // Until then the streams fill the room that chance had left at the onset.
    expect(firstShedMs).toBeLessThanOrEqual(1500);
  });

  it("is answered with sheds within a second, on average", () => {
    const firstShedMs = [1, 2, 3, 4, 5, 6].map((seed) => run(seed).firstShedMs);
    expect(firstShedMs.reduce((sum, ms) => sum + ms, 0) / firstShedMs.length).toBeLessThanOrEqual(1000);
  });
});

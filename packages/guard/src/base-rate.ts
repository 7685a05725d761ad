import { designFailing, type FailingDesign } from "./failing-test.ts";

/** Fault rates of healthy fleets that the test is made for; which one holds is learned. */
const LEVELS = [0.0005, 0.003, 0.01, 0.03] as const;
const ASSUMED = 1;

/** Faults and answers count half after so long. */
const HALF_LIFE_MS = 600_000;

/** Standard deviations by which the pool must lie off a level before another one is taken. */
const SURE = 2;

/** Answers per second that a test is made for, as powers of two. */
const OCTAVE_LEAST = -3;
const OCTAVE_MOST = 10;

/** Mean time between two false alarms of one engine, hours: 0.85 in 1,000 engine-hours. */
const FALSE_ALARM_HOURS = 1000 / 0.85;

/**
 * What a healthy engine of this fleet answers wrongly, learned from all that are not suspected: a fleet without faults is
 * judged by three in a row, one whose model fails now and then is not emptied for it. Assumed to be 0.3 % until a lower
 * rate is sure, or a higher one is seen.
 */
export class BaseRate {
  #faults = 0;
  #answers = 0;
  #atMs: number;
  #level = ASSUMED;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** What engines that nothing speaks against answered since the last call. */
  add(faults: number, answers: number, nowMs: number): void {
    const kept = 0.5 ** ((nowMs - this.#atMs) / HALF_LIFE_MS);
    this.#atMs = nowMs;
    this.#faults = this.#faults * kept + faults;
    this.#answers = this.#answers * kept + answers;
    this.#level = this.#find();
  }

  get rate(): number {
    return LEVELS[this.#level]!;
  }

  /** The test for an engine that answers so often. */
  design(answersPerS: number): FailingDesign {
    // In octaves, so that a design is worked out a few times in the life of a process.
    const octave = Math.ceil(Math.log2(Math.max(answersPerS, 1e-9)));
    return designed(this.#level, Math.min(OCTAVE_MOST, Math.max(OCTAVE_LEAST, octave)));
  }

  #find(): number {
    const spread = SURE * Math.sqrt(this.#faults + 1);
    const [least, most] = [this.#faults - spread, this.#faults + 1 + spread];
    let level = ASSUMED;
    while (level > 0 && most <= LEVELS[level - 1]! * this.#answers) level--;
    while (level < LEVELS.length - 1 && least > LEVELS[level]! * this.#answers) level++;
    return level;
  }
}

/** By octave and level; asked for by every engine at every tick. */
const designs: FailingDesign[] = [];

function designed(level: number, octave: number): FailingDesign {
  const at = (octave - OCTAVE_LEAST) * LEVELS.length + level;
  designs[at] ??= designFailing(LEVELS[level]!, 2 ** octave * 3600 * FALSE_ALARM_HOURS);
  return designs[at];
}

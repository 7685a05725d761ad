import type { Judged } from "./class-pace.ts";
import { type FailingDesign, FailingTest } from "./failing-test.ts";
import type { PenaltyKind, PenaltyWish } from "./penalty-limits.ts";
import { PenaltyRamp } from "./penalty-ramp.ts";
import { looksHealthy, SlowTest } from "./slow-test.ts";

/** What a person is shown of an engine under suspicion. */
export interface PenaltyEvidence {
  readonly kind: PenaltyKind;
  /** `watched`: halfway to a penalty; `capped`: it would have one but for the limits; `returning`: on its way back. */
  readonly state: "watched" | "penalised" | "capped" | "returning";
  /** Since the detection; null before it. */
  readonly sinceMs: number | null;
  /** What this test multiplies the engine's share by. */
  readonly factor: number;
  /** ln of the likelihood ratio of sick to healthy. */
  readonly logRatio: number;
  /** Failing: faults and answers since nothing spoke against it, and the rate that healthy engines have. */
  readonly faults?: number;
  readonly answers?: number;
  readonly baseRate?: number;
  /** Slow: times observed ÷ expected, by the class's median; null = not seen. */
  readonly ttftRatio?: number | null;
  readonly tbotRatio?: number | null;
}

/** Answers per second fade over this long. */
const RATE_MS = 10_000;
/** From this part of the way to a limit on an engine is shown as watched, and not learned from. */
const WATCHED = 0.5;
const SHOWN = 1000;

const NO_WISHES: readonly PenaltyWish[] = [];

/** The tests of one engine and what follows from them. */
export class EnginePenalty {
  readonly id: string;
  readonly #failing: FailingTest;
  readonly #ttft = new SlowTest();
  readonly #tbot = new SlowTest();
  readonly #ramps = { failing: new PenaltyRamp(), slow: new PenaltyRamp() };
  #answersPerS = 0;
  #rateAtMs: number;
  #slowRatio: { ttft: number | null; tbot: number | null } = { ttft: null, tbot: null };

  constructor(id: string, design: FailingDesign, nowMs: number) {
    this.id = id;
    this.#failing = new FailingTest(design);
    this.#rateAtMs = nowMs;
  }

  began(nowMs: number): void {
    this.#ramps.failing.began(nowMs);
    this.#ramps.slow.began(nowMs);
  }

  /** An attempt that was answered, well or not. @param beganMs when it was sent */
  answered(fault: boolean, beganMs: number, nowMs: number): void {
    this.#failing.observe(fault);
    this.#answersPerS += 1000 / RATE_MS;
    if (!fault) this.#ramps.failing.good(beganMs);
    else if (this.#failing.alarmed) this.#ramps.failing.alarm(nowMs);
  }

  /** A tick's time to first token or between tokens. */
  paced(measure: "ttft" | "tbot", { x, spread, worth }: Judged, beganMs: number, nowMs: number): void {
    const test = measure === "ttft" ? this.#ttft : this.#tbot;
    test.observe(x, spread, worth);
    const last = this.#slowRatio[measure];
    this.#slowRatio[measure] = last === null ? x : last + (x - last) / 5;
    if (test.alarmed) this.#ramps.slow.alarm(nowMs);
    else if (looksHealthy(x)) this.#ramps.slow.good(beganMs);
  }

  /** @param designFor the failing test for so many answers per second */
  tick(designFor: (answersPerS: number) => FailingDesign, nowMs: number): void {
    this.#answersPerS *= Math.exp((this.#rateAtMs - nowMs) / RATE_MS);
    this.#rateAtMs = nowMs;
    // A penalised engine has few answers because it is penalised: that must not make the way back another one.
    if (!this.#ramps.failing.active) this.#failing.design = designFor(this.#answersPerS);
    this.#ramps.failing.tick(nowMs);
    this.#ramps.slow.tick(nowMs);
  }

  /** Nothing speaks against it: what it answers is what healthy engines answer. */
  get healthy(): boolean {
    return !this.#ramps.failing.active && this.#failing.suspicion < WATCHED;
  }

  /** Its times are what healthy engines have, by chance now and then a little late. */
  get keepsPace(): boolean {
    return !this.#ramps.slow.active && Math.max(this.#ttft.suspicion, this.#tbot.suspicion) < WATCHED;
  }

  /** Nothing at all speaks against it: time alone changes no more than what is made up for when it is heard of again. */
  get unsuspected(): boolean {
    const { failing, slow } = this.#ramps;
    const suspicion = this.#failing.suspicion + this.#ttft.suspicion + this.#tbot.suspicion;
    return suspicion === 0 && !failing.active && !slow.active;
  }

  /** What it asks for: nothing from most engines at most times. */
  wishes(): readonly PenaltyWish[] {
    const { failing, slow } = this.#ramps;
    if (!failing.active && !slow.active) return NO_WISHES;
    const { faults, answers } = this.#failing;
    const wishes: PenaltyWish[] = [];
    if (failing.active)
      wishes.push({
        engine: this.id,
        kind: "failing",
        factor: failing.factor,
        badness: answers > 0 ? faults / answers : 0,
      });
    if (slow.active) wishes.push({ engine: this.id, kind: "slow", factor: slow.factor, badness: this.#slowBadness() });
    return wishes;
  }

  wantsRequest(nowMs: number): boolean {
    return this.#ramps.failing.wantsRequest(nowMs) || this.#ramps.slow.wantsRequest(nowMs);
  }

  /** The heavier of the two kinds; null when nothing speaks against the engine. */
  evidence(capped: ReadonlySet<PenaltyKind>, nowMs: number): PenaltyEvidence | null {
    const failing = this.#evidenceOf("failing", this.#failing.suspicion, capped, nowMs);
    const slow = this.#evidenceOf("slow", Math.max(this.#ttft.suspicion, this.#tbot.suspicion), capped, nowMs);
    if (failing !== null && (slow === null || failing.factor <= slow.factor)) {
      const { faults, answers, design, logRatio } = this.#failing;
      return { ...failing, logRatio: rounded(logRatio), faults, answers, baseRate: design.baseRate };
    }
    if (slow === null) return null;
    const { ttft, tbot } = this.#slowRatio;
    return {
      ...slow,
      logRatio: rounded(Math.max(this.#ttft.logRatio, this.#tbot.logRatio)),
      ttftRatio: ttft === null ? null : rounded(Math.exp(ttft)),
      tbotRatio: tbot === null ? null : rounded(Math.exp(tbot)),
    };
  }

  #evidenceOf(
    kind: PenaltyKind,
    suspicion: number,
    capped: ReadonlySet<PenaltyKind>,
    nowMs: number,
  ): Pick<PenaltyEvidence, "kind" | "state" | "sinceMs" | "factor"> | null {
    const ramp = this.#ramps[kind];
    if (!ramp.active) return suspicion < WATCHED ? null : { kind, state: "watched", sinceMs: null, factor: 1 };
    const sinceMs = Math.round(nowMs - ramp.detectedMs);
    if (capped.has(kind)) return { kind, state: "capped", sinceMs, factor: 1 };
    return { kind, state: ramp.atFloor ? "penalised" : "returning", sinceMs, factor: ramp.factor };
  }

  #slowBadness(): number {
    const { ttft, tbot } = this.#slowRatio;
    return 1 - Math.exp(-Math.max(0, ttft ?? 0, tbot ?? 0));
  }
}

function rounded(value: number): number {
  return Math.round(value * SHOWN) / SHOWN;
}

import { LEAST_RPS, type Level } from "./level.ts";

/**
 * Levels added up: those of a cell's gateways, or of a whole cluster. Arrivals are Poisson, so the mean of a rate λ over T
 * has the variance λ/T. Conversations come in runs, which makes it larger over half a minute and more: measured three to
 * four times over 30 to 60 s of conversations of five turns.
 */
export class LevelSum {
  readonly levels: Level[] = [];
  fastRps = 0;
  recentRps = 0;
  longRps = 0;
  #fastOverS = 0;
  #recentVariance = 0;
  #longVariance = 0;

  add(level: Level): void {
    this.levels.push(level);
    this.fastRps += level.fast.perSecond;
    this.recentRps += level.recent.perSecond;
    this.longRps += level.long.perSecond;
    this.#fastOverS = Math.max(this.#fastOverS, level.fast.overS);
    this.#recentVariance += level.long.perSecond / level.recent.overS;
    this.#longVariance += level.long.perSecond / level.long.overS;
  }

  /** The last seconds stand above a level by more than chance would have it; by roots, since low counts are skew. */
  isAbove(rps: number): boolean {
    const deviation = 0.5 / Math.sqrt(this.#fastOverS);
    return Math.sqrt(this.fastRps) > Math.sqrt(Math.max(rps, LEAST_RPS)) + RISE_DEVIATIONS * deviation;
  }

  /** The last half minute differs from the long mean by more than chance would have it, runs of conversations counted in. */
  get hasChanged(): boolean {
    const variance = RUNS * Math.max(this.#recentVariance, LEAST_RPS / RECENT_OVER_S);
    return Math.abs(this.recentRps - this.longRps) > CHANGE_DEVIATIONS * Math.sqrt(variance);
  }

  /** One deviation of the long mean, runs counted in. */
  get longDeviationRps(): number {
    return Math.sqrt(RUNS * this.#longVariance);
  }

  /** One deviation of the recent mean by chance alone: while a change is followed the runs are a part of it. */
  get recentDeviationRps(): number {
    return Math.sqrt(this.#recentVariance);
  }

  jump(): void {
    for (const level of this.levels) level.jump();
    this.recentRps = this.fastRps;
    this.longRps = this.fastRps;
  }

  restart(): void {
    for (const level of this.levels) level.restart();
    this.longRps = this.recentRps;
  }
}

const RISE_DEVIATIONS = 4;
const CHANGE_DEVIATIONS = 2;
/** Variance of half a minute of conversations over that of single requests. */
const RUNS = 3;
const RECENT_OVER_S = 60;

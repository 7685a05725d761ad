import type { Effort } from "./measure.ts";

/** One thing to time. */
export interface BenchCase {
  /** Such as `pick/native/64-engines/36-B`. A name never changes its meaning; a new meaning is a new name. */
  readonly name: string;
  /** Operations in one call of `run`: one call must take far longer than the clock's resolution. */
  readonly batch: number;
  /** Calls in a round, at least, where they take so long that the group's effort asks for too many. */
  readonly leastRuns?: number;
  run(): unknown;
  /** Contestants that must give the same answer share a question. */
  readonly question: string;
  /** What this contestant answers; compared with the other contestants' and with the group's own truth by a test. */
  answer(): unknown;
}

/** Cases that share what they need: an addon, a snapshot, a server. */
export interface BenchGroup {
  readonly name: string;
  /** `short`: for a test or CI, sizes and cases that take seconds. A group that takes seconds anyway may ignore it. */
  open(form: BenchForm): Promise<OpenGroup>;
}

export type BenchForm = "full" | "short";

export interface OpenGroup {
  readonly cases: readonly BenchCase[];
  /** The right answer to each question, not by way of a contestant; one left out is settled by agreement. */
  readonly truths: ReadonlyMap<string, unknown>;
  /** What could not be timed here, one line each, such as a missing addon. */
  readonly missing: readonly string[];
  /** How hard to time these cases, where the usual would take too long. */
  readonly effort?: Effort;
  /** Case ÷ case, printed and kept beside the times: it says more than they do on another machine. */
  readonly ratios?: readonly BenchRatio[];
  /** What the cases are held to on the machine class that the project's goals were set on. */
  readonly goals?: ReadonlyMap<string, Goal>;
  /** Takes figures that are no times, in the unit that ends the name. */
  figures?(): Readonly<Record<string, number>> | Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

export interface BenchRatio {
  readonly name: string;
  /** Names of cases. */
  readonly over: string;
  readonly under: string;
}

export interface Goal {
  readonly mustMs: number;
  readonly aimMs: number;
}

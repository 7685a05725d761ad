/** One thing to time. */
export interface BenchCase {
  /** Such as `pick/native/64-engines/36-B`. A name never changes its meaning; a new meaning is a new name. */
  readonly name: string;
  /** Operations in one call of `run`: one call must take far longer than the clock's resolution. */
  readonly batch: number;
  run(): unknown;
  /** Contestants that must give the same answer share a question. */
  readonly question: string;
  /** What this contestant answers; compared with the other contestants' and with the group's own truth by a test. */
  answer(): unknown;
}

/** Cases that share what they need: an addon, a snapshot, a server. */
export interface BenchGroup {
  readonly name: string;
  open(): Promise<OpenGroup>;
}

export interface OpenGroup {
  readonly cases: readonly BenchCase[];
  /** The right answer to each question, not by way of a contestant; one left out is settled by agreement. */
  readonly truths: ReadonlyMap<string, unknown>;
  /** What could not be timed here, one line each, such as a missing addon. */
  readonly missing: readonly string[];
  close(): Promise<void>;
}

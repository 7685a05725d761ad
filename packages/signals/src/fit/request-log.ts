import type { Deployment } from "./load-curve.ts";

/** One request of a log, checked. */
export interface LoggedRequest {
  readonly startMs: number;
  readonly promptTokens: number;
  /** Of the prompt, those that the engine found in its cache; 0 where the log does not say. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly ttftMs: number;
  /** From its start to its last token. */
  readonly e2eMs: number;
}

/** What makes requests comparable: one engine, one workload; and one clock. */
export interface LogGroup {
  readonly deployment: Deployment;
  readonly workload: string;
  /** Requests of one run share a clock and weigh on each other. */
  readonly run: string;
}

/**
 * The requests of one group, as columns in the order of the file: 48 bytes each, so that a log of 200 MB needs less than
 * 150 MB.
 */
export class LoggedRun implements Iterable<LoggedRequest> {
  readonly group: LogGroup;
  #size = 0;
  #columns = new Float64Array(COLUMNS * 1024);

  constructor(group: LogGroup) {
    this.group = group;
  }

  get size(): number {
    return this.#size;
  }

  add({ startMs, promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs }: LoggedRequest): void {
    const at = this.#size * COLUMNS;
    if (at === this.#columns.length) {
      const wider = new Float64Array(this.#columns.length * 2);
      wider.set(this.#columns);
      this.#columns = wider;
    }
    this.#columns.set([startMs, promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs], at);
    this.#size += 1;
  }

  at(index: number): LoggedRequest {
    const [startMs, promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs] = this.#columns.subarray(
      index * COLUMNS,
      (index + 1) * COLUMNS,
    ) as unknown as [number, number, number, number, number, number];
    return { startMs, promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs };
  }

  startMs(index: number): number {
    return this.#columns[index * COLUMNS]!;
  }

  e2eMs(index: number): number {
    return this.#columns[index * COLUMNS + 5]!;
  }

  *[Symbol.iterator](): Iterator<LoggedRequest> {
    for (let index = 0; index < this.#size; index++) yield this.at(index);
  }
}

const COLUMNS = 6;

/** The requests of one or several log files. */
export interface RequestLog {
  readonly runs: readonly LoggedRun[];
  /** Rows that no request could be made of, by why. */
  readonly left: Readonly<Record<string, number>>;
}

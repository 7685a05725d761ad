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

/** The requests of one group, in the order of the file: 28 bytes each, so that a log need not fit into memory as text. */
export class LoggedRun {
  readonly group: LogGroup;
  #size = 0;
  /** A block at a time: one that grew would be held twice while it is copied. */
  readonly #starts: Float64Array[] = [];
  readonly #rest: Float32Array[] = [];

  constructor(group: LogGroup) {
    this.group = group;
  }

  get size(): number {
    return this.#size;
  }

  add({ startMs, promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs }: LoggedRequest): void {
    const place = this.#size % BLOCK;
    if (place === 0) {
      this.#starts.push(new Float64Array(BLOCK));
      this.#rest.push(new Float32Array(BLOCK * COLUMNS));
    }
    this.#starts.at(-1)![place] = startMs;
    this.#rest.at(-1)!.set([promptTokens, cachedTokens, outputTokens, ttftMs, e2eMs], place * COLUMNS);
    this.#size += 1;
  }

  at(index: number): LoggedRequest {
    const rest = this.#rest[Math.floor(index / BLOCK)]!;
    const from = (index % BLOCK) * COLUMNS;
    return {
      startMs: this.startMs(index),
      promptTokens: rest[from]!,
      cachedTokens: rest[from + 1]!,
      outputTokens: rest[from + 2]!,
      ttftMs: rest[from + 3]!,
      e2eMs: rest[from + 4]!,
    };
  }

  startMs(index: number): number {
    return this.#starts[Math.floor(index / BLOCK)]![index % BLOCK]!;
  }

  e2eMs(index: number): number {
    return this.#rest[Math.floor(index / BLOCK)]![(index % BLOCK) * COLUMNS + COLUMNS - 1]!;
  }
}

const BLOCK = 4096;
/** Beside the start. */
const COLUMNS = 5;

/** The requests of one or several log files. */
export interface RequestLog {
  readonly runs: readonly LoggedRun[];
  /** Rows that no request could be made of, by why. */
  readonly left: Readonly<Record<string, number>>;
}

import { Churn } from "./churn.ts";
import type { Workload } from "./workload.ts";

/** How a request ended for its client. */
export const ENDED = { not: 0, answered: 1, shed: 2, failed: 3, gaveUp: 4 } as const;
export type Ended = (typeof ENDED)[keyof typeof ENDED];

/** One point over time; figures of engines by their place in the fleet. */
export interface Sample {
  readonly atMs: number;
  /** Finished work ÷ capacity since the sample before. */
  readonly utilisation: Float32Array;
  /** Running and waiting. */
  readonly requests: Float32Array;
  /** Part of the fleet's keys that publications since then moved, at least. */
  readonly moved: number;
  /** Weights that changed the other way than before. */
  readonly reversals: number;
}

/** What became of each request, and of the fleet over time. Written by the run, read when it is over. */
export class Tally {
  readonly workload: Workload;
  /** When it came, ms; NaN where it never did. */
  readonly arrivedMs: Float64Array;
  readonly ended: Uint8Array;
  /** From the client's sending to its first token and to its last, ms. */
  readonly ttftMs: Float32Array;
  readonly e2eMs: Float32Array;
  /** Round trip to the engine that answered. */
  readonly networkMs: Float32Array;
  /** Engine that answered; -1 = none. */
  readonly engine: Int16Array;
  readonly cachedTokens: Uint32Array;
  /** Attempts of gateways, and of the client. */
  readonly attempts: Uint8Array;
  readonly clientAttempts: Uint8Array;
  readonly churn = new Churn();
  /** Points over time. */
  readonly samples: Sample[] = [];

  constructor(workload: Workload) {
    const { size } = workload;
    this.workload = workload;
    this.arrivedMs = new Float64Array(size).fill(Number.NaN);
    this.ended = new Uint8Array(size);
    this.ttftMs = new Float32Array(size).fill(Number.NaN);
    this.e2eMs = new Float32Array(size).fill(Number.NaN);
    this.networkMs = new Float32Array(size);
    this.engine = new Int16Array(size).fill(-1);
    this.cachedTokens = new Uint32Array(size);
    this.attempts = new Uint8Array(size);
    this.clientAttempts = new Uint8Array(size);
  }
}

import type { Driven } from "./drive-client.ts";

/** What came of the requests of one cluster and class in one interval. Times include the network's round trip. */
export interface DriveCell {
  readonly cluster: string;
  readonly class: string;
  readonly sent: number;
  /** Whole answers. */
  readonly answered: number;
  /** By what was wrong. */
  readonly failures: Readonly<Record<string, number>>;
  /** Whole answers by engine. */
  readonly engines: Readonly<Record<string, number>>;
  /** null before the first answer. */
  readonly meanMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
  /** Mean time to the first byte. */
  readonly firstByteMs: number | null;
  /** Mean round trip to the engines that answered. */
  readonly networkMs: number | null;
}

/** Counts of one cluster and class, taken and begun anew at each report. */
export class DriveTally {
  readonly #cluster: string;
  readonly #class: string;
  #sent = 0;
  #latencyMs: number[] = [];
  #firstByteMs = 0;
  #networkMs = 0;
  #engines = new Map<string, number>();
  #failures = new Map<string, number>();

  constructor(cluster: string, requestClass: string) {
    this.#cluster = cluster;
    this.#class = requestClass;
  }

  sent(): void {
    this.#sent += 1;
  }

  /** `networkMs`: the round trip between the cluster and the engine that answered. */
  ended(driven: Driven, networkMs: number): void {
    if (driven.failure !== null) {
      count(this.#failures, driven.failure);
      return;
    }
    this.#latencyMs.push(driven.totalMs + networkMs);
    this.#firstByteMs += (driven.firstByteMs ?? driven.totalMs) + networkMs;
    this.#networkMs += networkMs;
    count(this.#engines, driven.engine ?? "(none named)");
  }

  take(): DriveCell {
    const sorted = this.#latencyMs.sort((a, b) => a - b);
    const answered = sorted.length;
    const cell: DriveCell = {
      cluster: this.#cluster,
      class: this.#class,
      sent: this.#sent,
      answered,
      failures: Object.fromEntries(this.#failures),
      engines: Object.fromEntries(this.#engines),
      meanMs: answered === 0 ? null : sorted.reduce((sum, each) => sum + each, 0) / answered,
      p50Ms: quantile(sorted, 0.5),
      p95Ms: quantile(sorted, 0.95),
      p99Ms: quantile(sorted, 0.99),
      firstByteMs: answered === 0 ? null : this.#firstByteMs / answered,
      networkMs: answered === 0 ? null : this.#networkMs / answered,
    };
    this.#sent = 0;
    this.#latencyMs = [];
    this.#firstByteMs = 0;
    this.#networkMs = 0;
    this.#engines = new Map();
    this.#failures = new Map();
    return cell;
  }
}

/** The smallest value that at least this part of them does not exceed. */
function quantile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

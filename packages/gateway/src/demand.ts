import type { DemandReport } from "@guidevane/core";

/** What arrived of one class since the last report. */
interface ClassCounts {
  offered: number;
  work: number;
  retries: number;
  clientRetries: number;
  shed: number;
}

/** What a report says of an engine beyond counts. */
export interface EngineDemand {
  readonly id: string;
  readonly attempts: number;
  readonly faults: number;
  readonly dead: boolean;
  readonly rttMs: number | null;
}

/** Counts arrivals between two reports to the control plane. Every arrival counts, whatever became of it. */
export class DemandWindow {
  readonly #gateway: string;
  readonly #cluster: string;
  #classes = new Map<string, ClassCounts>();
  #seq = 0;
  #sinceMs: number;

  constructor(gateway: string, cluster: string, nowMs: number) {
    this.#gateway = gateway;
    this.#cluster = cluster;
    this.#sinceMs = nowMs;
  }

  arrived(requestClass: string, work: number, clientRetry: boolean): void {
    const counts = this.#of(requestClass);
    counts.offered += 1;
    counts.work += work;
    if (clientRetry) counts.clientRetries += 1;
  }

  retried(requestClass: string): void {
    this.#of(requestClass).retries += 1;
  }

  shed(requestClass: string): void {
    this.#of(requestClass).shed += 1;
  }

  /** The report of the window that ends now; the next window begins. */
  take(nowMs: number, engines: Iterable<EngineDemand>): DemandReport {
    const report: DemandReport = {
      gateway: this.#gateway,
      cluster: this.#cluster,
      seq: this.#seq++,
      windowMs: Math.max(1, nowMs - this.#sinceMs),
      classes: Object.fromEntries(this.#classes),
      engines: Object.fromEntries(
        [...engines].map(({ id, attempts, faults, dead, rttMs }) => [
          id,
          { attempts, faults, failFactor: 1, slowFactor: 1, dead, ttftRatio: null, rttMs },
        ]),
      ),
    };
    // A class that had arrivals goes on being reported, as none: silence and zero are two things.
    this.#classes = new Map([...this.#classes.keys()].map((name) => [name, noCounts()]));
    this.#sinceMs = nowMs;
    return report;
  }

  #of(requestClass: string): ClassCounts {
    let counts = this.#classes.get(requestClass);
    if (counts === undefined) {
      counts = noCounts();
      this.#classes.set(requestClass, counts);
    }
    return counts;
  }
}

function noCounts(): ClassCounts {
  return { offered: 0, work: 0, retries: 0, clientRetries: 0, shed: 0 };
}

import type { DemandReport } from "@guidevane/core";

/** What arrived of one class in a while. */
export interface ClassCounts {
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
  readonly failFactor: number;
  readonly slowFactor: number;
  readonly dead: boolean;
  /** Time to first token ÷ the expected one, lately; null before enough was seen. */
  readonly ttftRatio: number | null;
  readonly rttMs: number | null;
}

/** What is counted of an engine; the rest comes from its penalties. */
export type EngineCounts = Omit<EngineDemand, "failFactor" | "slowFactor" | "ttftRatio">;

/** Counts what arrives at one request thread. Every arrival counts, whatever becomes of it. */
export class Arrivals {
  #classes = new Map<string, ClassCounts>();

  arrived(requestClass: string, work: number, clientRetry: boolean): void {
    const counts = countsOf(this.#classes, requestClass);
    counts.offered += 1;
    counts.work += work;
    if (clientRetry) counts.clientRetries += 1;
  }

  retried(requestClass: string): void {
    countsOf(this.#classes, requestClass).retries += 1;
  }

  shed(requestClass: string): void {
    countsOf(this.#classes, requestClass).shed += 1;
  }

  /** Counts by class since the last call. */
  take(): ReadonlyMap<string, ClassCounts> {
    const taken = this.#classes;
    this.#classes = new Map();
    return taken;
  }
}

/** Adds up what the process's threads counted between two reports to the control plane. */
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

  add(arrived: ReadonlyMap<string, ClassCounts>): void {
    for (const [requestClass, more] of arrived) {
      const counts = countsOf(this.#classes, requestClass);
      for (const each of Object.keys(counts) as (keyof ClassCounts)[]) counts[each] += more[each];
    }
  }

  /** The report of the window that ends now, but for the engines; the next window begins. @param leaving the gateway is stopping */
  take(nowMs: number, leaving = false): Omit<DemandReport, "engines"> {
    const report = {
      gateway: this.#gateway,
      cluster: this.#cluster,
      seq: this.#seq++,
      windowMs: Math.max(1, nowMs - this.#sinceMs),
      ...(leaving ? { leaving } : {}),
      classes: Object.fromEntries(this.#classes),
    };
    // A class that had arrivals goes on being reported, as none: silence and zero are two things.
    this.#classes = new Map([...this.#classes.keys()].map((name) => [name, noCounts()]));
    this.#sinceMs = nowMs;
    return report;
  }
}

/** Engines that are written in one part: some tens of microseconds. */
const ENGINES_A_PART = 64;

/** A report as JSON, in small parts: a thread that serves requests may yield between them. */
export function* writeReport(
  head: Omit<DemandReport, "engines">,
  engines: Iterable<EngineDemand>,
): Generator<void, string> {
  const texts: string[] = [];
  for (const { id, attempts, faults, failFactor, slowFactor, dead, ttftRatio, rttMs } of engines) {
    if (texts.length > 0 && texts.length % ENGINES_A_PART === 0) yield;
    const engine: DemandReport["engines"][string] = {
      attempts,
      faults,
      failFactor,
      slowFactor,
      dead,
      ttftRatio,
      rttMs,
    };
    texts.push(`${JSON.stringify(id)}:${JSON.stringify(engine)}`);
  }
  return `${JSON.stringify(head).slice(0, -1)},"engines":{${texts.join(",")}}}`;
}

function countsOf(classes: Map<string, ClassCounts>, requestClass: string): ClassCounts {
  let counts = classes.get(requestClass);
  if (counts === undefined) {
    counts = noCounts();
    classes.set(requestClass, counts);
  }
  return counts;
}

function noCounts(): ClassCounts {
  return { offered: 0, work: 0, retries: 0, clientRetries: 0, shed: 0 };
}

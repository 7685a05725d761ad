import { type EngineKind, type EngineSignals, SIGNAL_NAMES, type Signal, type SignalName } from "@guidevane/core";
import { COUNTER_NAMES, type CounterName, type Reading } from "./dialects/dialect.ts";
import { dialectOf } from "./dialects/index.ts";
import { RateWindow } from "./window.ts";

/** Window of the rates: long enough that one slow scrape does not show as a dip. */
const RATE_WINDOW_MS = 30_000;

/**
 * The signals of one engine as they age. *Missing*, *stale* and *zero* are three different things: a failed scrape makes
 * the last values old, a page without the series makes them missing, and only a page that says 0 makes them 0.
 */
export class SignalBook {
  readonly #hasMetrics: boolean;
  readonly #freshMs: number;
  #reading: Reading | null = null;
  #atMs = 0;
  readonly #rates: Readonly<Record<CounterName, RateWindow>>;

  /** @param freshMs age up to which a value is `fresh` */
  constructor(kind: EngineKind, freshMs: number) {
    this.#hasMetrics = dialectOf(kind) !== null;
    this.#freshMs = freshMs;
    this.#rates = byName(COUNTER_NAMES, () => new RateWindow(RATE_WINDOW_MS));
  }

  observe(reading: Reading, nowMs: number): void {
    this.#reading = reading;
    this.#atMs = nowMs;
    for (const name of COUNTER_NAMES) this.#rates[name].add(reading.counters[name], nowMs);
  }

  at(nowMs: number): EngineSignals {
    return byName(SIGNAL_NAMES, (name) => this.#signal(name, nowMs));
  }

  /** Per second; null where too little is known. */
  rates(nowMs: number): Readonly<Record<CounterName, number | null>> {
    return byName(COUNTER_NAMES, (name) => this.#rates[name].perSecond(nowMs));
  }

  #signal(name: SignalName, nowMs: number): Signal {
    if (!this.#hasMetrics) return NOT_OFFERED;
    // Ready replicas are not every vLLM's to give, so before the first page nothing is lacking.
    const said = this.#reading?.signals[name] ?? (name === "readyReplicas" ? "not-offered" : "missing");
    if (said === "not-offered") return NOT_OFFERED;
    if (said === "missing") return MISSING;
    const ageMs = Math.max(0, Math.round(nowMs - this.#atMs));
    return { value: said, state: ageMs <= this.#freshMs ? "fresh" : "stale", ageMs };
  }
}

/** A value for each name; TypeScript can't see that none is left out. */
function byName<Name extends string, Value>(names: readonly Name[], of: (name: Name) => Value): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, Value>;
}

const NOT_OFFERED: Signal = { value: null, state: "not-offered", ageMs: null };
const MISSING: Signal = { value: null, state: "missing", ageMs: null };

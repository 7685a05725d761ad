import type { Clock, EngineSignals, EngineSpec, Fleet, Random } from "@guidevane/core";
import {
  type Aside,
  dialectOf,
  dialectOfPage,
  parsePrometheusText,
  type Reading,
  type Said,
  SignalBook,
  wantedByAny,
} from "@guidevane/signals";
import { EngineHealth, type ProbedHealth } from "./engine-health.ts";
import { MAX_PAGE_BYTES, type ProbeOutcome, type Prober } from "./engine-probe.ts";

/**
 * The signal path: asks every engine for its health and its metrics, on time and jittered, and keeps what it said.
 *
 *     probe /health ──▶ EngineHealth ──▶ ready | unknown | dead ─┐
 *     scrape /metrics ─▶ parse ─▶ dialect ─▶ SignalBook ─────────┴─▶ the tick, the feed, the admin API
 *
 * One collector per fleet: engines slow down when every gateway scrapes them.
 */

/** Between scrapes. An engine's page costs it a few ms of its own event loop. */
const SCRAPE_MS = 2000;

/** Age up to which a signal is fresh: one scrape may fail, and the next may take its whole time. */
const FRESH_MS = 3 * SCRAPE_MS;

/** Wait for a second answer that decides: traffic must leave a dead engine at once, and be back within 5 s of its return. */
const CONFIRM_MS = 500;

/** Spread of the intervals, so that a fleet's engines are not all asked at the same instant. */
const JITTER = 0.1;

export type ScrapeResult = "ok" | "no-metrics" | "http-error" | "refused" | "timeout" | "too-large" | "failed";

export interface CollectorOptions {
  readonly fleet: Fleet;
  readonly prober: Prober;
  readonly clock: Clock;
  readonly random: Random;
  /** An engine's health or ready replicas changed. */
  readonly onChange: (id: string) => void;
  readonly onScrape: (id: string, result: ScrapeResult, message: string) => void;
}

/** What the collector knows of one engine at one time. */
export interface Observation {
  readonly probed: ProbedHealth;
  readonly signals: EngineSignals;
  /** Per second; null where too little is known. */
  readonly rates: ReturnType<SignalBook["rates"]>;
}

export class Collector {
  readonly #options: CollectorOptions;
  #engines: ReadonlyMap<string, Entry> = new Map();
  #stopped = false;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#engines = this.#entriesOf(options.fleet);
  }

  /** Begins; the first answers are in when it resolves, so that the first tick knows which engines live. */
  async start(): Promise<void> {
    await this.#begin([...this.#engines.values()]);
  }

  /**
   * Gets ready for another fleet file: the first answers of engines that are new, or asked otherwise than before, are in
   * when it resolves. What was learned of the others stays. The function that it gives makes the fleet the present one.
   */
  async prepare(fleet: Fleet): Promise<() => void> {
    const next = this.#entriesOf(fleet);
    const fresh = [...next.values()].filter((entry) => this.#engines.get(entry.engine.id) !== entry);
    await Promise.all(fresh.flatMap((entry) => [this.#probe(entry), this.#scrape(entry)]));
    return () => {
      const gone = [...this.#engines.values()].filter((entry) => next.get(entry.engine.id) !== entry);
      this.#engines = next;
      for (const entry of gone) end(entry);
      for (const entry of fresh) this.#keepAsking(entry);
    };
  }

  stop(): void {
    this.#stopped = true;
    for (const entry of this.#engines.values()) end(entry);
  }

  /** One entry an engine, the present one where the engine is asked as before. */
  #entriesOf(fleet: Fleet): Map<string, Entry> {
    const nowMs = this.#options.clock.nowMs();
    return new Map(
      [...fleet.engines.values()].map((engine) => {
        const present = this.#engines.get(engine.id);
        if (present !== undefined && asksAlike(present.engine, engine)) return [engine.id, present];
        const rules = { replicas: engine.replicas, pathIsDefault: engine.health.pathIsDefault };
        const entry: Entry = {
          engine,
          health: new EngineHealth(rules, nowMs),
          book: new SignalBook(engine.kind, FRESH_MS),
          cancels: new Map(),
          ended: false,
        };
        return [engine.id, entry];
      }),
    );
  }

  async #begin(entries: readonly Entry[]): Promise<void> {
    await Promise.all(entries.flatMap((entry) => [this.#probe(entry), this.#scrape(entry)]));
    for (const entry of entries) this.#keepAsking(entry);
  }

  #keepAsking(entry: Entry): void {
    const { health, metrics } = entry.engine;
    if (health.path !== null)
      this.#repeat(
        entry,
        "health",
        () => this.#probeIntervalMs(entry),
        () => this.#probe(entry),
      );
    if (metrics.path !== null)
      this.#repeat(
        entry,
        "metrics",
        () => SCRAPE_MS,
        () => this.#scrape(entry),
      );
  }

  of(id: string): Observation | undefined {
    const engine = this.#engines.get(id);
    if (engine === undefined) return undefined;
    const nowMs = this.#options.clock.nowMs();
    return { probed: engine.health.present, signals: engine.book.at(nowMs), rates: engine.book.rates(nowMs) };
  }

  /** Each round begins a fixed time after the last one ended, so that a slow engine never has two at once. */
  #repeat(entry: Entry, name: string, intervalMs: () => number, round: () => Promise<void>): void {
    if (this.#stopped || entry.ended) return;
    const delayMs = intervalMs() * (1 - JITTER + 2 * JITTER * this.#options.random());
    const cancel = this.#options.clock.after(delayMs, () => {
      void round().then(() => this.#repeat(entry, name, intervalMs, round));
    });
    entry.cancels.set(name, cancel);
  }

  #probeIntervalMs({ engine, health }: Entry): number {
    return health.undecided ? Math.min(CONFIRM_MS, engine.health.intervalMs) : engine.health.intervalMs;
  }

  async #probe(entry: Entry): Promise<void> {
    const { engine } = entry;
    const { path } = engine.health;
    if (path === null) return;
    const outcome = await this.#options.prober.ask(engine, engine.health, path);
    if (this.#stopped || entry.ended) return;
    const changed = entry.health.observe(outcome, this.#options.clock.nowMs());
    if (changed && this.#engines.get(engine.id) === entry) this.#options.onChange(engine.id);
  }

  async #scrape(entry: Entry): Promise<void> {
    const { engine } = entry;
    const { path } = engine.metrics;
    const dialect = dialectOf(engine.kind);
    if (path === null || dialect === null) return;
    const outcome = await this.#options.prober.ask(engine, engine.metrics, path);
    if (this.#stopped || entry.ended) return;
    if (outcome.kind !== "answer" || outcome.status !== 200) {
      const [result, message] = scrapeFailure(outcome);
      this.#options.onScrape(engine.id, result, message);
      return;
    }
    const page = parsePrometheusText(outcome.body, wantedByAny);
    // The page of another kind than the fleet file says is read as what it is.
    const spoken = dialectOfPage(page, engine.kind) ?? dialect;
    const reading = spoken.read(page);
    const whole = spoken.aside === undefined ? reading : await this.#askAside(engine, spoken.aside, reading);
    if (this.#stopped || entry.ended) return;
    const nowMs = this.#options.clock.nowMs();
    const before = entry.book.at(nowMs).readyReplicas.value;
    entry.book.observe(whole, nowMs);
    const empty = page.samples.size === 0;
    this.#options.onScrape(engine.id, empty ? "no-metrics" : "ok", empty ? "no known series on the page" : "");
    const changed = entry.book.at(nowMs).readyReplicas.value !== before;
    if (changed && this.#engines.get(engine.id) === entry) this.#options.onChange(engine.id);
  }

  async #askAside(engine: EngineSpec, aside: Aside, reading: Reading): Promise<Reading> {
    const outcome = await this.#options.prober.ask(engine, engine.metrics, aside.path);
    return { ...reading, signals: { ...reading.signals, [aside.signal]: saidAside(aside, outcome) } };
  }
}

/** An engine that was started without the page doesn't offer it; one that should give it and does not is missing it. */
function saidAside(aside: Aside, outcome: ProbeOutcome): Said {
  if (outcome.kind !== "answer") return "missing";
  if (outcome.status === 200) return aside.read(outcome.body);
  return NOT_SERVED.has(outcome.status) ? "not-offered" : "missing";
}

const NOT_SERVED: ReadonlySet<number> = new Set([403, 404, 405, 501]);

/** One engine as it is asked, and what it said. */
interface Entry {
  readonly engine: EngineSpec;
  readonly health: EngineHealth;
  readonly book: SignalBook;
  /** Of the rounds to come, by name. */
  readonly cancels: Map<string, () => void>;
  ended: boolean;
}

function end(entry: Entry): void {
  entry.ended = true;
  for (const cancel of entry.cancels.values()) cancel();
}

/** Whether two definitions of an engine are asked in the same way and judged by the same rules. */
function asksAlike(one: EngineSpec, other: EngineSpec): boolean {
  const asked = ({ url, kind, replicas, auth, health, metrics }: EngineSpec) =>
    JSON.stringify([url, kind, replicas, auth, health, metrics]);
  return asked(one) === asked(other);
}

function scrapeFailure(outcome: ProbeOutcome): [ScrapeResult, string] {
  switch (outcome.kind) {
    case "answer":
      return ["http-error", `http ${outcome.status}`];
    case "too-large":
      return ["too-large", `page is over ${MAX_PAGE_BYTES} bytes`];
    default:
      return [outcome.kind, outcome.message];
  }
}

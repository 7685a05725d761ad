import type { Clock, EngineSignals, EngineSpec, Fleet, Random } from "@guidevane/core";
import { dialectOf, parsePrometheusText, SignalBook } from "@guidevane/signals";
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
  readonly #engines = new Map<string, { health: EngineHealth; book: SignalBook }>();
  readonly #cancels = new Map<string, () => void>();
  #stopped = false;

  constructor(options: CollectorOptions) {
    this.#options = options;
    const nowMs = options.clock.nowMs();
    for (const engine of options.fleet.engines.values()) {
      const rules = { replicas: engine.replicas, pathIsDefault: engine.health.pathIsDefault };
      this.#engines.set(engine.id, {
        health: new EngineHealth(rules, nowMs),
        book: new SignalBook(engine.kind, FRESH_MS),
      });
    }
  }

  /** Begins; the first answers are in when it resolves, so that the first tick knows which engines live. */
  async start(): Promise<void> {
    const engines = [...this.#options.fleet.engines.values()];
    await Promise.all(engines.flatMap((engine) => [this.#probe(engine), this.#scrape(engine)]));
    for (const engine of engines) {
      if (engine.health.path !== null)
        this.#repeat(
          `health ${engine.id}`,
          () => this.#probeIntervalMs(engine),
          () => this.#probe(engine),
        );
      if (engine.metrics.path !== null)
        this.#repeat(
          `metrics ${engine.id}`,
          () => SCRAPE_MS,
          () => this.#scrape(engine),
        );
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#cancels.values()) cancel();
  }

  of(id: string): Observation | undefined {
    const engine = this.#engines.get(id);
    if (engine === undefined) return undefined;
    const nowMs = this.#options.clock.nowMs();
    return { probed: engine.health.present, signals: engine.book.at(nowMs), rates: engine.book.rates(nowMs) };
  }

  /** Each round begins a fixed time after the last one ended, so that a slow engine never has two at once. */
  #repeat(name: string, intervalMs: () => number, round: () => Promise<void>): void {
    if (this.#stopped) return;
    const delayMs = intervalMs() * (1 - JITTER + 2 * JITTER * this.#options.random());
    const cancel = this.#options.clock.after(delayMs, () => {
      void round().then(() => this.#repeat(name, intervalMs, round));
    });
    this.#cancels.set(name, cancel);
  }

  #probeIntervalMs({ id, health }: EngineSpec): number {
    return this.#engines.get(id)?.health.undecided ? Math.min(CONFIRM_MS, health.intervalMs) : health.intervalMs;
  }

  async #probe(engine: EngineSpec): Promise<void> {
    const { path } = engine.health;
    const entry = this.#engines.get(engine.id);
    if (path === null || entry === undefined) return;
    const outcome = await this.#options.prober.ask(engine, engine.health, path);
    if (this.#stopped) return;
    if (entry.health.observe(outcome, this.#options.clock.nowMs())) this.#options.onChange(engine.id);
  }

  async #scrape(engine: EngineSpec): Promise<void> {
    const { path } = engine.metrics;
    const dialect = dialectOf(engine.kind);
    const entry = this.#engines.get(engine.id);
    if (path === null || dialect === null || entry === undefined) return;
    const outcome = await this.#options.prober.ask(engine, engine.metrics, path);
    if (this.#stopped) return;
    if (outcome.kind !== "answer" || outcome.status !== 200) {
      const [result, message] = scrapeFailure(outcome);
      this.#options.onScrape(engine.id, result, message);
      return;
    }
    const nowMs = this.#options.clock.nowMs();
    const before = entry.book.at(nowMs).readyReplicas.value;
    const page = parsePrometheusText(outcome.body, (name) => dialect.wants(name));
    entry.book.observe(dialect.read(page), nowMs);
    const empty = page.samples.size === 0;
    this.#options.onScrape(engine.id, empty ? "no-metrics" : "ok", empty ? "no known series on the page" : "");
    if (entry.book.at(nowMs).readyReplicas.value !== before) this.#options.onChange(engine.id);
  }
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

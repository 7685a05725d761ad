import { type Fleet, SIGNAL_NAMES, SIGNAL_STATES, type StoredPublication } from "@guidevane/core";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ScrapeResult } from "./collect.ts";
import type { EngineState } from "./engine-state.ts";

/**
 * How a tick ended, as `guidevane_publish_total{result}` counts it. `held`: the present weights will do; `frozen` and
 * `advise`: a plan was made, and an operator has it held back.
 */
export type PublishResult =
  | "published"
  | "held"
  | "frozen"
  | "advise"
  | "solve-failed"
  | "verify-failed"
  | "store-conflict"
  | "store-failed";

/** The control plane's own metrics. Labels hold only names of the fleet file. */
export class ControlMetrics {
  readonly registry = new Registry();
  readonly #at = { registers: [this.registry] };
  readonly solveSeconds = new Histogram({
    name: "guidevane_solve_seconds",
    help: "Time that a solve took.",
    labelNames: ["solver"],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3],
    ...this.#at,
  });
  readonly gapRatio = new Gauge({
    name: "guidevane_gap_ratio",
    help: "Proven distance of the published weights from the optimum, as a part of the objective.",
    ...this.#at,
  });
  readonly publishTotal = new Counter<"result">({
    name: "guidevane_publish_total",
    help: "Ticks by how they ended.",
    labelNames: ["result"],
    ...this.#at,
  });
  readonly keysMovedRatio = new Gauge({
    name: "guidevane_keys_moved_ratio",
    help: "Part of the requests whose key got another home by the last publication.",
    ...this.#at,
  });
  readonly demandRps = new Gauge({
    name: "guidevane_demand_rps",
    help: "Offered requests/s that this tick plans for; the snapshot has those that its weights were made for.",
    labelNames: ["cluster", "class"],
    ...this.#at,
  });
  readonly demandRefused = new Counter<"cluster">({
    name: "guidevane_demand_refused_total",
    help: "Reports of gateways with more arrivals than are believed.",
    labelNames: ["cluster"],
    ...this.#at,
  });
  readonly engineLoadRatio = new Gauge({
    name: "guidevane_engine_load_ratio",
    help: "Planned load of an engine over what it was planned to hold.",
    labelNames: ["engine"],
    ...this.#at,
  });
  readonly engineCapacityPriceMs = new Gauge({
    name: "guidevane_engine_capacity_price_ms",
    help: "What one more unit of work at an engine costs beyond congestion, for want of capacity.",
    labelNames: ["engine"],
    ...this.#at,
  });
  readonly scrapeTotal = new Counter<"engine" | "result">({
    name: "guidevane_scrape_total",
    help: "Scrapes of an engine's metrics by how they ended.",
    labelNames: ["engine", "result"],
    ...this.#at,
  });
  readonly signalState = new Gauge({
    name: "guidevane_signal_state",
    help: "1 for the state that a signal of an engine is in, 0 for the others.",
    labelNames: ["engine", "signal", "state"],
    ...this.#at,
  });
  readonly leader = new Gauge({
    name: "guidevane_leader",
    help: "1 while this control plane may publish, 0 when a later writer has replaced it.",
    ...this.#at,
  });

  scraped(engine: string, result: ScrapeResult): void {
    this.scrapeTotal.inc({ engine, result });
  }

  /** The present weights stay, proven this near to the best for the demand of now. */
  unmoved(gap: number | null): void {
    this.publishTotal.inc({ result: "held" });
    this.keysMovedRatio.set(0);
    if (gap !== null) this.gapRatio.set(gap);
  }

  /** @param rps by cluster and class, a line break between them */
  demand(rps: ReadonlyMap<string, number>): void {
    this.demandRps.reset();
    for (const [cell, each] of rps) {
      const [cluster, requestClass] = cell.split("\n");
      this.demandRps.set({ cluster: cluster!, class: requestClass! }, each);
    }
  }

  published(stored: StoredPublication, moved: number | null): void {
    this.publishTotal.inc({ result: "published" });
    this.leader.set(1);
    if (moved !== null) this.keysMovedRatio.set(moved);
    this.engineLoadRatio.reset();
    this.engineCapacityPriceMs.reset();
    for (const snapshot of stored.clusters.values()) {
      this.gapRatio.set(snapshot.certificate.gap);
      for (const [engine, { loadWps, capacityWps }] of Object.entries(snapshot.engines)) {
        if (capacityWps > 0) this.engineLoadRatio.set({ engine }, loadWps / capacityWps);
      }
      for (const cell of snapshot.cells) {
        for (const [index, engine] of cell.engines.entries()) {
          this.engineCapacityPriceMs.set({ engine }, cell.addends[index]![CAPACITY] / cell.work);
        }
      }
    }
  }

  signals(fleet: Fleet, states: ReadonlyMap<string, EngineState>): void {
    for (const engine of fleet.engines.keys()) {
      for (const signal of SIGNAL_NAMES) {
        const present = states.get(engine)?.observation.signals[signal].state;
        for (const state of SIGNAL_STATES) this.signalState.set({ engine, signal, state }, state === present ? 1 : 0);
      }
    }
  }
}

/** Place of the capacity price among a cell's addends. */
const CAPACITY = 3;

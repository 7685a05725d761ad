import type { EngineKind, SignalName } from "@guidevane/core";
import type { PrometheusPage } from "../prometheus-text.ts";

/** Counters that only rise while the process lives, by what they count. */
export const COUNTER_NAMES = ["promptTokens", "generationTokens", "successes"] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];

/** A number may be zero; `missing` (this kind has it, this page did not) and `not-offered` (this kind has none) are not numbers. */
export type Said = number | "missing" | "not-offered";

/** What one page of metrics said. */
export interface Reading {
  readonly signals: Readonly<Record<SignalName, Said>>;
  /** By series, since each resets by itself when its process restarts; empty where the engine did not give it. */
  readonly counters: Readonly<Record<CounterName, ReadonlyMap<string, number>>>;
}

/** How one kind of engine says what every kind has. */
export interface Dialect {
  readonly kind: EngineKind;
  /** Whether a series of this name is read at all. */
  wants(name: string): boolean;
  read(page: PrometheusPage): Reading;
  /** A second page, where a signal is not among the metrics. */
  readonly aside?: Aside;
}

/** A page beside the metrics, and the signal that it has. */
export interface Aside {
  readonly path: string;
  readonly signal: SignalName;
  /** Never throws: a page that says nothing it should is `missing`. */
  read(text: string): Said;
}

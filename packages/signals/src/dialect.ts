import type { EngineKind, SignalName } from "@guidevane/core";
import type { PrometheusPage } from "./prometheus-text.ts";
import { vllmDialect } from "./vllm-dialect.ts";

/** Counters that only rise while the process lives, by what they count. */
export const COUNTER_NAMES = ["promptTokens", "generationTokens", "successes"] as const;
export type CounterName = (typeof COUNTER_NAMES)[number];

/** What one page of metrics said. A number may be zero; `missing` and `not-offered` are not numbers. */
export interface Reading {
  readonly signals: Readonly<Record<SignalName, number | "missing" | "not-offered">>;
  /** By series, since each resets by itself when its process restarts; empty where the engine did not give it. */
  readonly counters: Readonly<Record<CounterName, ReadonlyMap<string, number>>>;
}

/** How one kind of engine says what every kind has. */
export interface Dialect {
  readonly kind: EngineKind;
  /** Whether a series of this name is read at all. */
  wants(name: string): boolean;
  read(page: PrometheusPage): Reading;
}

/** The dialect of a kind, or null for one that has no metrics. */
export function dialectOf(kind: EngineKind): Dialect | null {
  return kind === "vllm" ? vllmDialect : null;
}

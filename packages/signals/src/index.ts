/** Engine metrics and gateway reports, to signals and demand. Pure: no I/O, and every time is passed in. */
export { DEMAND_FLOOR_RPS, type DemandLevel, DemandLevels, type EngineEvidence, type Taken } from "./demand-level.ts";
export { COUNTER_NAMES, type CounterName, type Dialect, dialectOf, type Reading } from "./dialect.ts";
export { SignalBook } from "./engine-signals.ts";
export { type PrometheusPage, parsePrometheusText, type Sample } from "./prometheus-text.ts";
export { vllmDialect } from "./vllm-dialect.ts";
export { RateWindow } from "./window.ts";

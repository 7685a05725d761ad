/** Engine metrics and gateway reports, to signals and demand. Pure: no I/O, and every time is passed in. */
export { type DemandLevel, DemandLevels, type EngineEvidence, type Taken } from "./demand-level.ts";
export {
  type Aside,
  COUNTER_NAMES,
  type CounterName,
  type Dialect,
  type Reading,
  type Said,
} from "./dialects/dialect.ts";
export { dialectOf, dialectOfPage, wantedByAny } from "./dialects/index.ts";
export { vllmDialect } from "./dialects/vllm.ts";
export { SignalBook } from "./engine-signals.ts";
export { type FittedCurve, fitCurve, LEVELS_MIN, type Prediction, predictAtInFlight } from "./fit/fit-curve.ts";
export { type Confidence, type FitContext, type FitSource, type FittedProfile, fitProfile } from "./fit/fit-profile.ts";
export { GPUS, type GpuFacts, MODELS, type ModelFacts, PRECISIONS } from "./fit/hardware-facts.ts";
export { type HeldOutError, leaveLevelsOut, leaveWorkloadOut } from "./fit/held-out.ts";
export {
  type Deployment,
  deploymentName,
  type LoadCurve,
  type LoadCurves,
  type LoadPoint,
  type LogFacts,
} from "./fit/load-curve.ts";
export { parseLoadPoints } from "./fit/load-points.ts";
export { curvesOfLog } from "./fit/log-curves.ts";
export { type LogFile, readRequestLog } from "./fit/read-log.ts";
export type { RequestLog } from "./fit/request-log.ts";
export { type Unsaturated, upToSaturation } from "./fit/saturation.ts";
export { SEED_LEVELS, type SeededProfile, type SeedRequest, seedProfile } from "./fit/seed-profile.ts";
export { type PrometheusPage, parsePrometheusText, type Sample } from "./prometheus-text.ts";
export { RateWindow } from "./window.ts";

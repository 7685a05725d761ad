/** Guard rails of a gateway: which engines may take traffic, whether to try again, what the plan sheds. */
export {
  type AttemptEnd,
  afterAttempt,
  type Circumstances,
  type Next,
  outcomeOfStatus,
} from "./after-attempt.ts";
export { type EngineBasis, EngineHealth, type HealthFacts, type ProbeResult, RAMP_MS } from "./health.ts";
export { createRetryMemory, RetryBudget, type RetryRows, retryRatio } from "./retry-budget.ts";
export { RetryKeeper, type RetrySettings } from "./retry-keeper.ts";
export { plannedShed, retryAfterS, SHED_LAPSES_MS } from "./shed.ts";
export { type CellFlow, cellUtilisations } from "./utilisation.ts";

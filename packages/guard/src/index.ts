/** Guard rails of a gateway: which engines may take traffic and how much of it, whether to try again, what is shed. */
export {
  Admission,
  type AdmissionLimits,
  type Admitted,
  type ShedReason,
  type Waiting,
} from "./admission.ts";
export { admissionClasses, partOf } from "./admission-classes.ts";
export {
  type AttemptEnd,
  afterAttempt,
  type Circumstances,
  type Next,
  outcomeOfStatus,
} from "./after-attempt.ts";
export type { PenaltyEvidence } from "./engine-penalty.ts";
export { type EngineBasis, EngineHealth, type HealthFacts, type ProbeResult, RAMP_MS } from "./health.ts";
export type { AdmissionClass, LimitReason } from "./occupancy.ts";
export { type AttemptBegun, PENALTY_TICK_MS, Penalties, type PenaltyVerdict } from "./penalties.ts";
export { type ExpectedTimes, expectedTimes, penaltyFleet } from "./penalty-fleet.ts";
export type { PenaltyCell, PenaltyEngine, PenaltyFleet, PenaltyKind } from "./penalty-limits.ts";
export { PromptLengths } from "./penalty-prompts.ts";
export { PENALTY_FLOOR } from "./penalty-ramp.ts";
export { FirstShare, plannedShed, retryAfterS, SHED_LAPSES_MS } from "./planned-shed.ts";
export { createRetryMemory, RetryBudget, type RetryRows, retryRatio } from "./retry-budget.ts";
export { RetryKeeper, type RetrySettings } from "./retry-keeper.ts";
export type { StreamCounts } from "./stream-counts.ts";
export { type CellFlow, cellUtilisations } from "./utilisation.ts";

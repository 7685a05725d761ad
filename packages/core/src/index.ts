/** Guidevane's nouns: schemas and types of what is read and sent, curves, errors, time and chance. No I/O. */

export { type Clock, ManualClock, systemClock } from "./clock.ts";
export { type CurveSet, type CurveValues, evaluateCurves, type Knots, valueAt } from "./curve.ts";
export { classDefinition, type EngineDefinition, engineDefinition, latencyDefinition } from "./definitions.ts";
export { DEMAND_FLOOR_RPS, type DemandReport, demandReportSchema, parseDemandReport } from "./demand.ts";
export { parseBy, parseYaml, refuse, schemaProblems } from "./document.ts";
export { type Ineligible, ineligibleFor } from "./eligible.ts";
export {
  type ErrorCode,
  GuidevaneError,
  type InputProblem,
  type InputProblemCode,
  problem,
  showProblem,
} from "./errors.ts";
export { type FeedEvent, type FeedEventName, feedEventSchemas, parseFeedEvent, writeFeedEvent } from "./feed.ts";
export {
  type ClassNeeds,
  type ClassSpec,
  type ClusterSpec,
  type EngineAuth,
  type EngineSpec,
  type Fleet,
  loadFleet,
  type ProbeSpec,
  profileOf,
  type ReadText,
  rttMsOf,
} from "./fleet.ts";
export { fleetJsonSchema, NOT_SUPPORTED_YET } from "./fleet-schema.ts";
export { knownNames } from "./known-names.ts";
export { type Network, type Place, parseRttCsv, rttBetween } from "./network.ts";
export { type PackedSnapshot, packSnapshot, unpackSnapshot } from "./packed-snapshot.ts";
export { type PlanColumns, planColumns } from "./plan-columns.ts";
export type { OperatorState, Pin, Publication, Store, StoredPublication } from "./ports.ts";
export { GENERIC_PROFILE, idleMs, type Profile, parseProfile, workOf } from "./profile.ts";
export { type Random, seededRandom, standardNormal } from "./random.ts";
export {
  type Bound,
  type Certificate,
  type ClusterSnapshot,
  checkClusterSnapshot,
  clusterSnapshotSchema,
  decodeRing,
  type EngineLatency,
  encodeRing,
  isNewer,
  parseClusterSnapshot,
  type Reserve,
  type SnapshotCell,
  type SnapshotClass,
  type SnapshotEngine,
  STREAM_LIMIT_FACTOR,
  type Stamp,
  snapshotTag,
} from "./snapshot.ts";
export {
  ADMIN_STATES,
  type AdminState,
  CAPABILITIES,
  type Capability,
  ENGINE_KINDS,
  type EngineKind,
  type EngineSignals,
  HEALTH_STATES,
  type HealthState,
  OUTCOMES,
  type Outcome,
  SIGNAL_NAMES,
  SIGNAL_STATES,
  type Signal,
  type SignalName,
  type SignalState,
} from "./words.ts";

export { countTokens, emulatedEmbedding, emulatedWords } from "./answer-text.ts";
export { type Drive, type DriveOptions, type DriveReport, startDrive } from "./drive.ts";
export type { DriveCell } from "./drive-tally.ts";
export { type EmulatedEngine, startEmulatedEngine } from "./emulated-engine.ts";
export { EMULATED_KINDS, type EmulatedKindName } from "./emulated-kinds/index.ts";
export type { Controls } from "./emulator-controls.ts";
export type { EmulatedEngineCounts } from "./engine-answers.ts";
export type { EngineModel } from "./engine-model.ts";
export type { EmulatedEngineOptions, ReceivedRequest } from "./engine-server.ts";
export { describedBy } from "./lab/described-by.ts";
export type { GuidevaneParts } from "./lab/guidevane/parts.ts";
export { type LabRun, runLab } from "./lab/lab.ts";
export type { ClientOptions, Failure, LabOptions } from "./lab/lab-options.ts";
export { cacheOracle, evenCacheOracle } from "./lab/policies/cache-oracle.ts";
export { guidevaneWith } from "./lab/policies/guidevane.ts";
export { POLICIES } from "./lab/policies/index.ts";
export {
  NOBODY,
  type Policy,
  type PolicyDefinition,
  type PolicyValues,
  type PolicyWorld,
  SHED,
} from "./lab/policy.ts";
export { figuresOf, type PolicyFigures, type Slo } from "./lab/report/figures.ts";
export { type LabReport, type ReportFacts, reportOf } from "./lab/report/report.ts";
export { reportPage } from "./lab/report/report-page.ts";
export {
  runStorm,
  STORM_RULES,
  type Storm,
  type StormOptions,
  type StormRule,
  TRIGGERS,
  type Trigger,
} from "./lab/storm.ts";
export { type SyntheticOptions, syntheticWorkload } from "./lab/synthetic.ts";
export { ENDED, type Sample, type Tally } from "./lab/tally.ts";
export { type ReadTraceOptions, readTrace } from "./lab/traces/index.ts";
export { tune } from "./lab/tune.ts";
export { type Workload, type WorkloadRow, workloadOf } from "./lab/workload.ts";

export { countTokens, emulatedEmbedding, emulatedWords } from "./answer-text.ts";
export { type Drive, type DriveOptions, type DriveReport, startDrive } from "./drive.ts";
export type { DriveCell } from "./drive-tally.ts";
export { type EmulatedEngine, startEmulatedEngine } from "./emulated-engine.ts";
export type { Controls } from "./emulator-controls.ts";
export { type Admission, EngineModel, type EngineModelOptions, type RequestSize } from "./engine-model.ts";
export type { EmulatedEngineCounts, EmulatedEngineOptions, ReceivedRequest } from "./engine-server.ts";

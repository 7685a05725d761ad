/** The data plane: `startGateway` runs one gateway of a cluster. */

export type { AnswerFacts } from "./answer-facts.ts";
export type { Decision, DecisionAddends, DecisionAttempt, RoutedState, RuledOutEngine } from "./decision.ts";
export { Decisions, type DecisionsOptions } from "./decisions.ts";
export type { EngineCall, EngineClient, EngineEvents, EngineFailure, EngineRequest } from "./engine-client.ts";
export { type Gateway, startGateway } from "./gateway.ts";
export type { GatewayOptions } from "./gateway-options.ts";
export type { Logger } from "./logger.ts";
export { AnswerObserver } from "./observer.ts";
export type { Probe } from "./probe.ts";
export type { RefusalReason } from "./snapshot-reading.ts";
export type { Offered } from "./snapshots.ts";

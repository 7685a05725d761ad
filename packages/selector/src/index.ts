/** The selector's public names. */

export { bootstrapSnapshot } from "./bootstrap.ts";
export { ClassBound } from "./class-bound.ts";
export { createRouterFactory, type RouterFactory, type SharedTable } from "./create-router.ts";
export { buildRing, countSlots, editRing, type Ring, type RingEdit } from "./ring.ts";
export {
  HEAD,
  HEAD_BYTES,
  HEAD_WORDS,
  type HeadFacts,
  KEY_SOURCES,
  type KeySource,
  NEED,
  NO_CLASS,
  NO_ENGINE,
  NO_SLOT,
  OUT,
  OUT_WORDS,
  PATH,
  REASONS,
  type Reason,
  ROUTE_STATUS,
  type Router,
  type RouteStatus,
  TRIED_MAX,
} from "./router.ts";
export {
  type RequestNeeds,
  type RuledOut,
  type RuledOutByPlan,
  ruledOutByPlan,
  ruledOutNow,
} from "./ruled-out.ts";
export {
  clearThread,
  countStreams,
  type SharedState,
  STATE,
  STATE_HEALTHY,
  setEngine,
  streamsAt,
  streamsOfCell,
  streamsOfEngine,
} from "./shared-state.ts";
export { type SlotLimits, SlotRegistry } from "./slots.ts";
export {
  classWord,
  compileTable,
  type HeldTable,
  holdSlots,
  namesOf,
  type RoutingTable,
  residencyWord,
  type SnapshotNames,
  type TableSlots,
  translate,
} from "./table.ts";
export type { Columns } from "./table-columns.ts";
export { UNUSUAL_MAX_BYTES } from "./unusual.ts";
export { xxh32 } from "./xxh32.ts";

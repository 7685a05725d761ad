/** `pool`: another gateway, such as llm-d's, with engines of its own; `openai`: any server of that API, of which nothing else is known. */
export const ENGINE_KINDS = ["vllm", "sglang", "tgi", "trtllm", "triton", "llamacpp", "pool", "openai"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** What an engine may be able to do and a class may need. */
export const CAPABILITIES = ["tools", "vision", "audio", "json_schema", "reasoning", "embeddings", "rerank"] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** What an operator or the fleet file says of an engine. `draining`: running answers finish, nothing new; `out`: not used. */
export const ADMIN_STATES = ["active", "draining", "out"] as const;
export type AdminState = (typeof ADMIN_STATES)[number];

/** How an engine stands: the first four by what was observed, the last two by an operator's word. */
export const HEALTH_STATES = ["ready", "unknown", "not-ready", "dead", "draining", "out"] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** How an attempt ended (the first five), and the gateway's own two. */
export const OUTCOMES = ["success", "client-error", "cancelled", "saturated", "fault", "shed", "rejected"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** `fresh`: younger than its limit; `stale`: older; `missing`: this kind has it and the engine did not give it; `not-offered`: this kind has none. */
export const SIGNAL_STATES = ["fresh", "stale", "missing", "not-offered"] as const;
export type SignalState = (typeof SIGNAL_STATES)[number];

/** One dated observation of one engine. `value` and `ageMs` are null where there is none. */
export interface Signal {
  readonly value: number | null;
  readonly state: SignalState;
  readonly ageMs: number | null;
}

/** `running`, `waiting`: requests; `kvUsage`: 0..1 of the cache; `readyReplicas`: of those that stand behind the engine. */
export const SIGNAL_NAMES = ["running", "waiting", "kvUsage", "readyReplicas"] as const;
export type SignalName = (typeof SIGNAL_NAMES)[number];

/** The signals of one engine, by name. */
export type EngineSignals = Readonly<Record<SignalName, Signal>>;

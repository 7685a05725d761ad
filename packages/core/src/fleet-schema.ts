import { z } from "zod";
import { ADMIN_STATES, CAPABILITIES, ENGINE_KINDS } from "./words.ts";

/** The fleet file as written (YAML), before defaults that need more than one key. Units are in the names. */

// A name of digits alone would lose its place: JavaScript objects list such keys first, and the order of classes counts.
const name = z
  .string()
  .regex(
    /^(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    "a name is 1–63 of A–Z a–z 0–9 . _ -, starts with a letter or digit, and is not digits alone",
  );
const text = z.string().min(1);
/** Above any fleet's figures, and low enough that their products and sums stay finite. */
const LARGEST = 1e12;
const positive = z.number().positive().max(LARGEST);
const notNegative = z.number().nonnegative().max(LARGEST);
const count = z.int().positive().max(LARGEST);
const port = z.int().min(1).max(65_535);
const httpPath = z.string().regex(/^\/[!-~]*$/, "a path starts with / and has no spaces");
const httpUrl = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

const auth = z
  .strictObject({ keyEnv: text.optional(), keyFile: text.optional(), passthrough: z.boolean().optional() })
  .refine((value) => Object.values(value).filter((each) => each !== undefined && each !== false).length <= 1, {
    error: "takes one of keyEnv, keyFile and passthrough",
  });

const tls = z
  .strictObject({
    caFile: text.optional(),
    certFile: text.optional(),
    keyFile: text.optional(),
    serverName: text.optional(),
  })
  .refine(({ certFile, keyFile }) => (certFile === undefined) === (keyFile === undefined), {
    error: "takes certFile and keyFile together",
  });

const health = z.strictObject({
  path: httpPath.optional(),
  port: port.optional(),
  intervalMs: positive.default(2000),
});

const engine = z.strictObject({
  url: httpUrl,
  kind: z.enum(ENGINE_KINDS).default("vllm"),
  region: text,
  models: z.array(text).min(1),
  profile: text.optional(),
  capacityWps: positive.optional(),
  replicas: count.default(1),
  compute: text.optional(),
  capabilities: z.array(z.enum(CAPABILITIES)).optional(),
  residency: text.optional(),
  maxContextTokens: count.optional(),
  maxStreams: count
    .optional()
    .describe("Most requests that it is given at a time, by all gateways together; left out = no hard limit."),
  adminState: z.enum(ADMIN_STATES).default("active"),
  auth: auth.optional(),
  tls: tls.optional(),
  health: health.prefault({}),
  metrics: z.strictObject({ path: httpPath.optional(), port: port.optional() }).prefault({}),
});

const needs = z.strictObject({
  capabilities: z.array(z.enum(CAPABILITIES)).default([]),
  residency: z.array(text).default([]),
  compute: z.array(text).default([]),
  contextTokens: notNegative.default(0),
  networkMs: positive.optional(),
});

const requestClass = z.strictObject({
  model: text,
  priority: z.int().default(0),
  work: positive.optional(),
  promptTokens: notNegative.optional(),
  outputTokens: notNegative.optional(),
  timers: z.strictObject({ firstTokenMs: positive.optional() }).optional(),
  needs: needs.prefault({}),
});

const policy = z.strictObject({
  tickMs: z
    .number()
    .min(100)
    .default(5000)
    .describe("Time between ticks. Shorter follows demand faster and costs more solves."),
  solveMs: positive.default(2000).describe("Deadline of one solve."),
  headroom: z
    .number()
    .min(0)
    .max(0.5)
    .default(0.06)
    .describe("Part of each engine's capacity whose use costs extra. More is safer and slower."),
  headroomMs: notNegative.default(6000).describe("Marginal cost of the last unit of capacity."),
  gateMs: notNegative
    .default(0.5)
    .describe(
      "Nothing is published while a solve could gain less than this per request. More is steadier; 0 = always solve.",
    ),
  churnMs: notNegative
    .default(1)
    .describe("What moving one request/s to another engine costs, once. More is steadier and slower to follow."),
  slots: z
    .int()
    .min(64)
    .max(65_536)
    .refine((value) => Number.isInteger(Math.log2(value)), { error: "must be a power of two" })
    .default(4096)
    .describe("Slots of a ring. More is finer and a larger snapshot."),
});

const timers = z.strictObject({
  connectMs: positive.default(2000),
  headMs: positive.default(300_000).describe("Until the head of a plain answer."),
  holdHeadMs: notNegative
    .default(10_000)
    .describe(
      "How long a stream's head waits for its first event, which may be an error that another engine would not give.",
    ),
  firstTokenMs: positive.default(60_000).describe("Until the first content of a stream."),
  idleMs: positive.default(30_000).describe("Longest silence inside an answer."),
  totalMs: notNegative.default(0).describe("Longest whole answer; 0 = no limit."),
  clientIdleMs: positive
    .default(75_000)
    .describe("How long a client's connection is kept without a request. A balancer in front must keep it for less."),
});

const limits = z.strictObject({
  headBytes: z.int().min(1024).default(16_384),
  headMs: positive.default(10_000),
  bodyBytes: z.int().positive().default(33_554_432),
  bodyMs: positive.default(60_000),
  connections: count
    .default(20_000)
    .describe("Clients' connections at a time; beyond it those idle for longest are closed. More needs more memory."),
  maxStreams: count.default(10_000).describe("Most requests at engines at a time. More needs more memory."),
  queue: z
    .int()
    .nonnegative()
    .max(LARGEST)
    .default(0)
    .describe("Requests that may wait for room at the engines; 0 = none waits, each is answered 429 at once."),
  queueMs: positive.default(1000).describe("Longest wait. More is fewer refusals, and later ones."),
});

const retry = z.strictObject({
  attempts: z
    .int()
    .min(1)
    .max(8)
    .default(2)
    .describe(
      "Attempts in all, each at a different engine where there is one; above 1 three without a connection are free.",
    ),
  maxRatio: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe("Most retries for each first attempt; less where the engines have less room."),
  floorPer10s: notNegative.default(1).describe("Retries of a model in 10 s that are always allowed."),
  startTokens: notNegative.default(3).describe("Retries that a model may make at the start."),
  retryAfterCapMs: notNegative.default(30_000).describe("Longest time that an engine is left alone on its own word."),
});

const origin = z.string().regex(/^(?:\*|https?:\/\/[A-Za-z0-9.[\]:-]+)$/, {
  error: "an origin is scheme://host or scheme://host:port without a path, or *",
});

const clientKeys = z
  .strictObject({ env: text.optional(), file: text.optional() })
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), { error: "takes one of env and file" });

const gateway = z.strictObject({
  timers: timers.prefault({}),
  limits: limits.prefault({}),
  retry: retry.prefault({}),
  placement: z
    .enum(["auto", "home"])
    .default("auto")
    .describe(
      "Where a conversation's first request goes: auto = to the less loaded of two engines while the cluster has one live gateway, home = always to its key's engine.",
    ),
  sessionHeaders: z
    .array(z.string().regex(/^[a-z0-9-]+$/i, "is not a header name"))
    .default([
      "x-session-id",
      "x-guidevane-session",
      "x-smg-routing-key",
      "x-dynamo-session-id",
      "x-litellm-session-id",
    ]),
  cors: z.strictObject({ origins: z.array(origin).default([]) }).prefault({}),
  clientKeys: clientKeys.optional(),
  trustHeaders: z
    .boolean()
    .optional()
    .describe("Whether x-guidevane-class, -residency and -tenant are believed. Default: true without client keys."),
});

const network = z.strictObject({ file: text.optional(), defaultRttMs: notNegative.default(100) });

export const fleetSchema = z.strictObject({
  clusters: z
    .record(name, z.strictObject({ region: text }))
    .refine((all) => Object.keys(all).length > 0, "a fleet needs a cluster: requests arrive nowhere else"),
  engines: z.record(name, engine).default({}),
  classes: z.record(name, requestClass).default({}),
  aliases: z.record(text, text).default({}),
  network: network.prefault({}),
  profiles: z.record(name, z.strictObject({ file: text })).default({}),
  demandRps: z.record(name, z.record(name, notNegative)).default({}),
  policy: policy.prefault({}),
  gateway: gateway.prefault({}),
});

export type FleetDocument = z.infer<typeof fleetSchema>;

/**
 * Keys that the fleet file reserves and whose effect is not built yet. They are refused by name: a setting that is
 * silently ignored is worse than one that is missing. `*` stands for any one key.
 */
export const NOT_SUPPORTED_YET: readonly string[] = ["engines.*.replicasFrom"];

/** The schema of the fleet file as JSON Schema, for editors. */
export function fleetJsonSchema(): unknown {
  return z.toJSONSchema(fleetSchema, { io: "input", target: "draft-2020-12" });
}

/** Every key with a unit in its name, and those beside it; used to tell a misspelt key from one without its unit. */
export const FLEET_KEYS: ReadonlySet<string> = new Set(
  [fleetSchema, engine, health, requestClass, needs, network, policy, timers, limits, retry, gateway].flatMap(
    (schema) => Object.keys(schema.shape),
  ),
);

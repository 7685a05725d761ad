import { z } from "zod";
import { parseBy, refuse } from "./document.ts";
import { GuidevaneError, type InputProblem, problem } from "./errors.ts";
import { ADMIN_STATES, CAPABILITIES, ENGINE_KINDS } from "./words.ts";

/**
 * One immutable, versioned publication, as one cluster sees it: the body of `GET /v1/snapshot`. Gateways route by
 * this and nothing else; it carries the engines' definitions without their credentials.
 */

const finite = z.number().finite();
const notNegative = finite.nonnegative();
const knots = z.array(z.tuple([notNegative, notNegative])).min(1);
const probe = { path: z.string().nullable(), pathIsDefault: z.boolean(), port: z.int().nullable() };

const snapshotEngine = z.object({
  url: z.string(),
  kind: z.enum(ENGINE_KINDS),
  region: z.string(),
  models: z.array(z.string()),
  capabilities: z.array(z.enum(CAPABILITIES)).nullable(),
  residency: z.string().nullable(),
  compute: z.string().nullable(),
  maxContextTokens: z.number().nullable(),
  /** Most requests at a time from all live gateways together; left out = no hard limit. */
  maxStreams: z.int().positive().exactOptional(),
  replicas: z.int().positive(),
  adminState: z.enum(ADMIN_STATES),
  health: z.object({ ...probe, intervalMs: z.number().positive() }),
  /** What its profile says of a request's times; older publications leave it out. */
  latency: z
    .object({
      ttftMs: knots,
      tbotMs: knots,
      prefillMsPerTok: notNegative,
      /** Of the request that `ttftMs` is about. */
      promptTokens: notNegative,
    })
    .exactOptional(),
  /** From this cluster. */
  rttMs: notNegative,
  /** 1 − severity it was planned with: 1 = healthy. */
  plannedFactor: z.number().min(0).max(1),
  /** Ready replicas it was planned with. */
  plannedReady: z.int().nonnegative(),
  /** Planned load from the whole fleet, work units/s. */
  loadWps: notNegative,
  /** Work units/s it was planned to hold. */
  capacityWps: notNegative,
  /** Price of one more unit of work here, ms. */
  priceMs: finite,
  /** Worth of one more unit of capacity here, ms of the fleet's latency per second. */
  worthMs: finite,
});

const snapshotClass = z.object({
  model: z.string(),
  priority: z.int(),
  work: z.number().positive(),
  promptTokens: notNegative,
  outputTokens: notNegative,
  firstTokenMs: z.number().positive().nullable(),
  needs: z.object({
    capabilities: z.array(z.enum(CAPABILITIES)),
    residency: z.array(z.string()),
    compute: z.array(z.string()),
    contextTokens: notNegative,
    networkMs: z.number().positive().nullable(),
  }),
});

/** A quarter more streams than engines hold at full load, before gateways shed on their own. */
export const STREAM_LIMIT_FACTOR = 1.25;

const reserve = z.object({ engine: z.string(), spareWps: notNegative, reducedCostMs: finite });

const snapshotCell = z.object({
  cluster: z.string(),
  class: z.string(),
  demandRps: notNegative,
  work: z.number().positive(),
  /** Ids of the cell's own engine list; the ring's indices point into it. */
  engines: z.array(z.string()),
  /** What was asked, one per engine of the cell; sums to 1. */
  weights: z.array(z.number().min(0).max(1)),
  /** Expected time of a request of this class there, ms. */
  expectedMs: z.array(notNegative),
  /** Per engine: network, service, congestion, capacity price, stability; ms per request. */
  addends: z.array(z.tuple([finite, finite, finite, finite, finite])),
  reserves: z.array(reserve),
  /** Fraction of demand to shed. */
  shed: z.number().min(0).max(1),
  /** What one more request costs the fleet, ms. */
  priceMs: finite,
  /** Streams that the cluster may hold for this class: `STREAM_LIMIT_FACTOR` × what its engines hold at full load. */
  streamLimit: notNegative,
  /** Set where an operator pinned the weights: what was said, and until when. */
  pin: z.object({ weights: z.record(z.string(), z.number()), until: z.string() }).exactOptional(),
  /** Base64 of slot owners: u8 indices into `engines`, u16 little endian when there are more than 256. Empty = no ring. */
  ring: z.string(),
});

const bound = z.object({
  /** Cost of the ring's shares, ms per request. */
  objectiveMs: finite,
  lowerBoundMs: finite,
  gapMs: finite,
  /** gapMs ÷ objectiveMs. */
  gap: finite,
});

const certificate = bound.extend({
  churnFree: bound,
  /** Per-request estimate of the mean latency; carries no proof. */
  expectedLatencyMs: finite,
});

export const clusterSnapshotSchema = z.object({
  version: z.int().nonnegative(),
  epoch: z.int().nonnegative(),
  /** ISO 8601 UTC. */
  madeAt: z.string(),
  cluster: z.string(),
  /** Live gateways of the cluster. */
  gateways: z.int().nonnegative(),
  engines: z.record(z.string(), snapshotEngine),
  classes: z.record(z.string(), snapshotClass),
  /** Other names that a body may call a model by: alias to model. */
  aliases: z.record(z.string(), z.string()).exactOptional(),
  cells: z.array(snapshotCell),
  certificate,
});

export type ClusterSnapshot = z.infer<typeof clusterSnapshotSchema>;
export type SnapshotEngine = z.infer<typeof snapshotEngine>;
/** Expected times of an engine's requests against its utilisation. */
export type EngineLatency = NonNullable<SnapshotEngine["latency"]>;
export type SnapshotClass = z.infer<typeof snapshotClass>;
export type SnapshotCell = z.infer<typeof snapshotCell>;
export type Reserve = z.infer<typeof reserve>;
export type Bound = z.infer<typeof bound>;
export type Certificate = z.infer<typeof certificate>;

/** Weights are doubles that were divided by their sum. */
const WEIGHT_TOLERANCE = 1e-6;

/**
 * JSON of a cluster's snapshot to a snapshot, checked: schema, weights summing to 1, every engine defined, ring of a
 * power of two slots pointing into the cell's list.
 *
 * @throws GuidevaneError `bad_snapshot`
 */
export function parseClusterSnapshot(json: string, name = "snapshot"): ClusterSnapshot {
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch (error) {
    throw new GuidevaneError("bad_snapshot", `${name}: is not JSON`, { cause: error });
  }
  const snapshot = parseBy(clusterSnapshotSchema, data, name, "bad_snapshot");
  refuse("bad_snapshot", name, checkClusterSnapshot(snapshot));
  return snapshot;
}

/** What is wrong with a snapshot beyond its types; empty when a gateway may route by it. */
export function checkClusterSnapshot(snapshot: ClusterSnapshot): InputProblem[] {
  const problems: InputProblem[] = [];
  for (const [index, cell] of snapshot.cells.entries()) {
    const at = `cells.${index}`;
    if (cell.cluster !== snapshot.cluster)
      problems.push(problem("invalid_value", `${at}.cluster`, cell.cluster, `is not ${snapshot.cluster}`));
    if (!Object.hasOwn(snapshot.classes, cell.class))
      problems.push(problem("unknown_name", `${at}.class`, cell.class, "is not a class of this snapshot"));
    for (const id of [...cell.engines, ...cell.reserves.map((each) => each.engine)]) {
      if (!Object.hasOwn(snapshot.engines, id))
        problems.push(problem("unknown_name", `${at}.engines`, id, "is not an engine of this snapshot"));
    }
    for (const [key, list] of [
      ["weights", cell.weights],
      ["expectedMs", cell.expectedMs],
      ["addends", cell.addends],
    ] as const) {
      if (list.length !== cell.engines.length)
        problems.push(
          problem(
            "invalid_value",
            `${at}.${key}`,
            list.length,
            `needs one entry for each of ${cell.engines.length} engines`,
          ),
        );
    }
    const sum = cell.weights.reduce((total, weight) => total + weight, 0);
    if (cell.engines.length > 0 && Math.abs(sum - 1) > WEIGHT_TOLERANCE)
      problems.push(problem("invalid_value", `${at}.weights`, sum, "must sum to 1"));
    problems.push(...ringProblems(cell, at));
  }
  return problems;
}

function ringProblems(cell: SnapshotCell, at: string): InputProblem[] {
  if (cell.ring === "") return [];
  const owners = decodeRing(cell);
  if (owners.length === 0 || (owners.length & (owners.length - 1)) !== 0)
    return [problem("invalid_value", `${at}.ring`, owners.length, "needs a power of two slots")];
  const stranger = owners.find((owner) => owner >= cell.engines.length);
  return stranger === undefined
    ? []
    : [problem("invalid_value", `${at}.ring`, stranger, `points outside the cell's ${cell.engines.length} engines`)];
}

/** Slot owners of a cell as indices into its engines; empty where the cell has no ring. */
export function decodeRing(cell: Pick<SnapshotCell, "ring" | "engines">): Uint16Array {
  const bytes = Buffer.from(cell.ring, "base64");
  if (cell.engines.length <= 256) return Uint16Array.from(bytes);
  const owners = new Uint16Array(bytes.length >>> 1);
  for (let slot = 0; slot < owners.length; slot++) owners[slot] = bytes.readUInt16LE(slot * 2);
  return owners;
}

/** The inverse of `decodeRing`. */
export function encodeRing(owners: Uint16Array, engines: number): string {
  if (engines <= 256) return Buffer.from(Uint8Array.from(owners)).toString("base64");
  const bytes = Buffer.alloc(owners.length * 2);
  for (const [slot, owner] of owners.entries()) bytes.writeUInt16LE(owner, slot * 2);
  return bytes.toString("base64");
}

/** What orders publications: a version counts within an epoch, and epochs only rise. */
export interface Stamp {
  readonly version: number;
  readonly epoch: number;
}

/** The tag of a snapshot: `EPOCH-VERSION`, the ETag of the admin API. */
export function snapshotTag({ epoch, version }: Stamp): string {
  return `${epoch}-${version}`;
}

/** Whether `next` may replace `present`: it is of a later epoch, or a later version of the same. */
export function isNewer(next: Stamp, present: Stamp): boolean {
  return next.epoch > present.epoch || (next.epoch === present.epoch && next.version > present.version);
}

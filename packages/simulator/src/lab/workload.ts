import { GuidevaneError } from "@guidevane/core";

/**
 * The requests of one run, as columns in order of their time: a million of them is memory that is laid out once. All
 * policies of a comparison get the very same ones.
 */
export interface Workload {
  readonly name: string;
  /** What was assumed where the source is silent, a sentence each. */
  readonly assumptions: readonly string[];
  /** Until then caches fill and conversations begin: what arrives before is simulated and not counted. */
  readonly settleMs: number;
  /** In the order that `cluster` and `requestClass` count in. */
  readonly clusters: readonly string[];
  readonly classes: readonly string[];
  readonly size: number;
  /** ms from the start, not falling; NaN where `previous` says when. */
  readonly atMs: Float64Array;
  readonly cluster: Uint16Array;
  readonly requestClass: Uint16Array;
  readonly promptTokens: Uint32Array;
  readonly outputTokens: Uint32Array;
  /** Number of its conversation; requests of one conversation share a routing key. */
  readonly conversation: Uint32Array;
  /** 0 for a conversation's first request. */
  readonly turn: Uint16Array;
  /** `blockIds[blockFrom .. blockFrom + promptBlocks]`: whole blocks of the prompt, `.. + afterBlocks` with the answer. */
  readonly blockFrom: Uint32Array;
  readonly promptBlocks: Uint32Array;
  readonly afterBlocks: Uint32Array;
  readonly blockIds: Int32Array;
  readonly blockTokens: number;
  /** The request whose answer this one waits for; -1 = comes at its own time. */
  readonly previous: Int32Array;
  /** ms between that answer and this request. */
  readonly thinkMs: Float32Array;
}

/** One request as readers and generators give it. */
export interface WorkloadRow {
  readonly atMs: number;
  readonly cluster: number;
  readonly requestClass: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly conversation: number;
  readonly turn: number;
  /** Ids of whole blocks of the prompt, then those that its answer adds. Conversations may share one array. */
  readonly blocks: readonly number[];
  readonly promptBlocks: number;
  readonly afterBlocks: number;
  /** The row before of its conversation, when this one waits for its answer. */
  readonly previous?: WorkloadRow;
  readonly thinkMs?: number;
}

export interface WorkloadFacts {
  readonly name: string;
  readonly assumptions: readonly string[];
  readonly settleMs: number;
  readonly clusters: readonly string[];
  readonly classes: readonly string[];
  readonly blockTokens: number;
}

/**
 * Rows to columns, in order of time; rows that wait for another come last, in their own order.
 *
 * @throws GuidevaneError `bad_trace` for a row whose figures can't be
 */
export function workloadOf(facts: WorkloadFacts, rows: readonly WorkloadRow[]): Workload {
  for (const row of rows) check(row, facts);
  const open = rows.filter(({ previous }) => previous === undefined).sort((a, b) => a.atMs - b.atMs);
  const waiting = rows.filter(({ previous }) => previous !== undefined);
  const order = [...open, ...waiting];
  const place = new Map(waiting.length > 0 ? order.map((row, index) => [row, index]) : []);
  const { blockIds, fromOf } = poolBlocks(order);
  const column = <A extends Float64Array | Float32Array | Uint32Array | Uint16Array | Int32Array>(
    to: A,
    of: (row: WorkloadRow) => number,
  ): A => {
    for (let index = 0; index < order.length; index++) to[index] = of(order[index]!);
    return to;
  };
  const size = order.length;
  return {
    ...facts,
    size,
    atMs: column(new Float64Array(size), (row) => (row.previous === undefined ? row.atMs : Number.NaN)),
    cluster: column(new Uint16Array(size), (row) => row.cluster),
    requestClass: column(new Uint16Array(size), (row) => row.requestClass),
    promptTokens: column(new Uint32Array(size), (row) => row.promptTokens),
    outputTokens: column(new Uint32Array(size), (row) => row.outputTokens),
    conversation: column(new Uint32Array(size), (row) => row.conversation),
    turn: column(new Uint16Array(size), (row) => row.turn),
    blockFrom: column(new Uint32Array(size), (row) => fromOf(row)),
    promptBlocks: column(new Uint32Array(size), (row) => row.promptBlocks),
    afterBlocks: column(new Uint32Array(size), (row) => row.afterBlocks),
    blockIds,
    previous: column(new Int32Array(size), (row) => (row.previous === undefined ? -1 : place.get(row.previous)!)),
    thinkMs: column(new Float32Array(size), (row) => row.thinkMs ?? 0),
  };
}

/** Each array of blocks once, however many rows share it. */
function poolBlocks(rows: readonly WorkloadRow[]): { blockIds: Int32Array; fromOf: (row: WorkloadRow) => number } {
  const from = new Map<readonly number[], number>();
  let length = 0;
  for (const { blocks } of rows) {
    if (from.has(blocks)) continue;
    from.set(blocks, length);
    length += blocks.length;
  }
  const blockIds = new Int32Array(length);
  for (const [blocks, at] of from) blockIds.set(blocks, at);
  return { blockIds, fromOf: ({ blocks }) => from.get(blocks)! };
}

function check(row: WorkloadRow, { clusters, classes }: WorkloadFacts): void {
  const refuse = (what: string, value: unknown): never => {
    throw new GuidevaneError("bad_trace", `a request of the workload has ${what} ${JSON.stringify(value)}`);
  };
  if (row.previous === undefined && !(row.atMs >= 0 && Number.isFinite(row.atMs))) refuse("the time", row.atMs);
  if (!(row.promptTokens >= 1)) refuse("so many prompt tokens:", row.promptTokens);
  if (!(row.outputTokens >= 0)) refuse("so many output tokens:", row.outputTokens);
  if (!(row.cluster >= 0 && row.cluster < clusters.length)) refuse("a cluster that it does not name:", row.cluster);
  if (!(row.requestClass >= 0 && row.requestClass < classes.length)) refuse("an unknown class:", row.requestClass);
  if (row.afterBlocks > row.blocks.length || row.promptBlocks > row.afterBlocks)
    refuse("fewer blocks than it says:", row.blocks.length);
}

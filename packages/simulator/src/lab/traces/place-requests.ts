import { GuidevaneError, seededRandom } from "@guidevane/core";
import { mix32 } from "../mix.ts";
import { type Workload, type WorkloadRow, workloadOf } from "../workload.ts";
import type { TraceOptions } from "./trace-options.ts";

/** A request as a trace has it. */
export interface TraceRequest {
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Requests of one conversation have one; left out: alone. */
  readonly session?: string;
  /** Ids of the whole blocks of its prompt, in order. Left out: those of its session so far, by its tokens. */
  readonly blocks?: readonly number[];
  /** Where it came from, where a trace says so. */
  readonly cluster?: string;
  readonly requestClass?: string;
}

/** Block size of requests that say nothing of blocks. */
const OWN_BLOCK_TOKENS = 256;

/**
 * Gives requests of a trace a cluster, a conversation and blocks.
 *
 * A conversation comes wholly from one cluster, drawn by its id in proportion to the parts. A cluster with a shift sees
 * the trace that many hours later, turned round its length: the day of a region further west.
 *
 * @throws GuidevaneError `bad_trace` for an empty trace
 */
export function placeRequests(
  requests: readonly TraceRequest[],
  options: TraceOptions,
  assumptions: readonly string[],
  blockTokens: number = OWN_BLOCK_TOKENS,
): Workload {
  const { name, origins, seed, speed = 1, seconds = Number.POSITIVE_INFINITY, settleMs = 0 } = options;
  if (requests.length === 0) throw new GuidevaneError("bad_trace", `${name}: has no requests`);
  // Times of day and epochs are as good as zero: what counts is the distance from the first.
  const times = requests.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const startMs = times[0]!;
  const lengthMs = times.at(-1)! - startMs + 1;
  const random = seededRandom(seed);
  const sessions = new Map<string, { id: number; salt: number; turn: number; blocks: number[]; last: number }>();
  const clusters = [...new Set([...origins.map(({ cluster }) => cluster), ...named(requests, "cluster")])];
  const classes = [...new Set([options.requestClass, ...named(requests, "requestClass")])];
  let nextBlock =
    requests.reduce((most, { blocks = [] }) => Math.max(most, ...blocks.slice(-1), ...blocks.slice(0, 1)), 0) + 1;
  const rows: WorkloadRow[] = [];
  for (const request of [...requests].sort((a, b) => a.atMs - b.atMs)) {
    const key = request.session ?? ` ${sessions.size}`;
    const session = sessions.get(key) ?? { id: sessions.size, salt: random(), turn: 0, blocks: [], last: 0 };
    sessions.set(key, session);
    const origin = originOf(origins, session.salt);
    const cluster = request.cluster ?? origin.cluster;
    const sinceMs = request.atMs - startMs + (request.cluster === undefined ? origin.shiftHours * 3_600_000 : 0);
    const atMs = (((sinceMs % lengthMs) + lengthMs) % lengthMs) / speed;
    const afterBlocks = Math.floor((request.promptTokens + request.outputTokens) / blockTokens);
    let promptBlocks = Math.floor(request.promptTokens / blockTokens);
    let blocks: number[];
    if (request.blocks === undefined) {
      // A prompt shorter than the one before is another beginning: none of its blocks is the same.
      if (request.promptTokens < session.last) session.blocks = [];
      session.last = request.promptTokens;
      while (session.blocks.length < afterBlocks) session.blocks.push(nextBlock++);
      blocks = session.blocks;
    } else {
      promptBlocks = Math.min(promptBlocks, request.blocks.length);
      blocks = request.blocks.slice(0, promptBlocks);
    }
    const turn = session.turn++;
    if (atMs >= seconds * 1000) continue;
    rows.push({
      atMs,
      cluster: clusters.indexOf(cluster),
      requestClass: classes.indexOf(request.requestClass ?? options.requestClass),
      promptTokens: Math.max(1, Math.round(request.promptTokens)),
      outputTokens: Math.round(request.outputTokens),
      conversation: session.id,
      turn,
      blocks,
      promptBlocks,
      afterBlocks: request.blocks === undefined ? afterBlocks : promptBlocks,
    });
  }
  return workloadOf(
    {
      name: `${name}${speed === 1 ? "" : `, ${speed} times as fast`}`,
      assumptions: [...assumptions, ...originAssumptions(options)],
      settleMs,
      clusters,
      classes,
      blockTokens,
    },
    rows,
  );
}

function named(requests: readonly TraceRequest[], key: "cluster" | "requestClass"): string[] {
  return [...new Set(requests.flatMap((request) => request[key] ?? []))];
}

function originOf(origins: TraceOptions["origins"], draw: number): TraceOptions["origins"][number] {
  const all = origins.reduce((sum, { part }) => sum + part, 0);
  let left = (mix32(draw * 4_294_967_296) / 4_294_967_296) * all;
  for (const origin of origins) {
    left -= origin.part;
    if (left < 0) return origin;
  }
  return origins.at(-1)!;
}

function originAssumptions({ origins }: TraceOptions): string[] {
  const all = origins.reduce((sum, { part }) => sum + part, 0);
  const parts = origins.map(({ cluster, part }) => `${cluster} ${((100 * part) / all).toFixed(0)} %`);
  const shifts = origins.filter(({ shiftHours }) => shiftHours !== 0);
  return [
    `the trace has no region of origin: conversations are drawn to ${parts.join(", ")}`,
    ...shifts.map(({ cluster, shiftHours }) => `${cluster} sees it ${shiftHours} hours later, turned round its length`),
  ];
}

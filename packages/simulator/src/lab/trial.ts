import { seededRandom } from "@guidevane/core";
import { BatchingEngine } from "./batching-engine.ts";
import type { EngineParameters } from "./engine-parameters.ts";

/** What requests meet on average. */
export interface Means {
  readonly ttftMs: number;
  readonly tbotMs: number;
}

/** One size of request. */
interface Size {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * What requests of one size meet at an engine whose memory is never full, when they come as a Poisson stream of `perMs`.
 * Infinite where the mechanism gets nowhere: times too small beside the clock's.
 */
export function trial(parameters: EngineParameters, { promptTokens, outputTokens }: Size, perMs: number): Means {
  const engine = new BatchingEngine({ ...parameters, kvBlocks: Number.POSITIVE_INFINITY });
  const random = seededRandom(SEED);
  const arrivedMs = new Float64Array(REQUESTS);
  const firstMs = new Float64Array(REQUESTS);
  let waitedMs = 0;
  let decodedMs = 0;
  engine.tell({
    began() {},
    firstToken(request, atMs) {
      firstMs[request] = atMs;
      waitedMs += atMs - arrivedMs[request]!;
    },
    finished(request, atMs) {
      decodedMs += atMs - firstMs[request]!;
    },
  });
  const size = { ids: NO_BLOCKS, promptTokens, outputTokens, from: 0, promptBlocks: 0, afterBlocks: 0 };
  let events = 0;
  /** What is due by then happens; false when it has no end. */
  const runTo = (atMs: number): boolean => {
    for (let dueMs = engine.nextMs(); dueMs <= atMs && dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) {
      if (++events > MOST_EVENTS) return false;
      engine.run(dueMs);
    }
    return true;
  };
  let nowMs = 0;
  for (let request = 0; request < REQUESTS; request++) {
    nowMs -= Math.log(1 - random()) / perMs;
    if (!runTo(nowMs)) return ENDLESS;
    arrivedMs[request] = nowMs;
    engine.take(nowMs, request, size);
  }
  if (!runTo(Number.POSITIVE_INFINITY)) return ENDLESS;
  return { ttftMs: waitedMs / REQUESTS, tbotMs: decodedMs / REQUESTS / outputTokens };
}

/** A mean over so many is within some per cent at 80 % load. */
const REQUESTS = 3000;
/** A request is two: its prompt ends, and its answer. */
const MOST_EVENTS = 20 * REQUESTS;
const ENDLESS: Means = { ttftMs: Number.POSITIVE_INFINITY, tbotMs: Number.POSITIVE_INFINITY };
/** The same arrivals at every trial, so that two mechanisms differ by what they are. */
const SEED = 3;
const NO_BLOCKS = new Int32Array(0);

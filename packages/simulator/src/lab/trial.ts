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

/** What requests of one size meet at an engine whose memory is never full, when they come as a Poisson stream of `perMs`. */
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
  let nowMs = 0;
  for (let request = 0; request < REQUESTS; request++) {
    nowMs -= Math.log(1 - random()) / perMs;
    for (let dueMs = engine.nextMs(); dueMs <= nowMs; dueMs = engine.nextMs()) engine.run(dueMs);
    arrivedMs[request] = nowMs;
    engine.take(nowMs, request, size);
  }
  for (let dueMs = engine.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) engine.run(dueMs);
  return { ttftMs: waitedMs / REQUESTS, tbotMs: decodedMs / REQUESTS / outputTokens };
}

/** A mean over so many is within some per cent at 80 % load. */
const REQUESTS = 3000;
/** The same arrivals at every trial, so that two mechanisms differ by what they are. */
const SEED = 3;
const NO_BLOCKS = new Int32Array(0);

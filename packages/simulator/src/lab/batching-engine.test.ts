import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { BatchingEngine, type EngineRequest } from "./batching-engine.ts";
import type { EngineParameters } from "./engine-parameters.ts";

/** Decodes one token a ms whatever else it does, and reads prompts in `fixedMs`. */
function plain(maxRunning: number, fixedMs: number, more: Partial<EngineParameters> = {}): EngineParameters {
  const ones = new Float64Array(maxRunning + 1).fill(1);
  return {
    maxRunning,
    stepMs: ones,
    mixedStepMs: ones,
    prefillFactor: ones,
    overheadMs: 0,
    prefill: { fixedMs, msPerTok: 0, leastMs: 0 },
    blockTokens: 16,
    kvBlocks: Number.POSITIVE_INFINITY,
    work: { prefillPerKtok: 1, decodePerKtok: 1 },
    ...more,
  };
}

const NO_BLOCKS = new Int32Array(0);
const bare = (outputTokens: number, promptTokens = 1): EngineRequest => ({
  ids: NO_BLOCKS,
  promptTokens,
  outputTokens,
  from: 0,
  promptBlocks: 0,
  afterBlocks: 0,
});

/** Offers Poisson arrivals; gives the mean time in system and the mean wait for the first token, ms. */
function offer(engine: BatchingEngine, count: number, perMs: number, seed: number, tokens: (draw: number) => number) {
  const random = seededRandom(seed);
  const arrivedMs = new Float64Array(count);
  let inSystemMs = 0;
  let firstMs = 0;
  let ended = 0;
  engine.tell({
    began() {},
    firstToken: (request, atMs) => {
      firstMs += atMs - arrivedMs[request]!;
    },
    finished: (request, atMs) => {
      inSystemMs += atMs - arrivedMs[request]!;
      ended += 1;
    },
  });
  let nowMs = 0;
  for (let request = 0; request < count; request++) {
    nowMs -= Math.log(1 - random()) / perMs;
    arrivedMs[request] = nowMs;
    for (let dueMs = engine.nextMs(); dueMs <= nowMs; dueMs = engine.nextMs()) engine.run(dueMs);
    engine.take(nowMs, request, bare(tokens(random())));
  }
  for (let dueMs = engine.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) engine.run(dueMs);
  expect(ended).toBe(count);
  return { inSystemMs: inSystemMs / count, firstMs: firstMs / count };
}

const exponential = (meanTokens: number) => (draw: number) => -Math.log(1 - draw) * meanTokens;

/** Of so many requests chance moves a mean by 0.7 %; the seeds are fixed. */
describe("an engine as a queue with a known answer", () => {
  it("is M/M/1 when one request decodes at a time: 1 ÷ (μ − λ)", () => {
    const engine = new BatchingEngine(plain(1, 0));
    const { inSystemMs } = offer(engine, 400_000, 0.06, 2, exponential(10));
    expect(Math.abs(inSystemMs / (10 / (1 - 0.6)) - 1)).toBeLessThan(0.01);
  });

  it("is M/M/c when c do, by Erlang's C formula", () => {
    const [c, perMs, meanMs] = [4, 0.3, 10];
    const load = perMs * meanMs;
    let term = 1;
    let sum = 1;
    for (let k = 1; k < c; k++) {
      term *= load / k;
      sum += term;
    }
    const last = (term * load) / c / (1 - load / c);
    const waits = last / (sum + last);
    const expectedMs = meanMs + (waits * meanMs) / (c - load);
    const engine = new BatchingEngine(plain(c, 0));
    const { inSystemMs } = offer(engine, 300_000, perMs, 2, exponential(meanMs));
    expect(Math.abs(inSystemMs / expectedMs - 1)).toBeLessThan(0.01);
  });

  it("is M/D/1 when it only reads prompts of one length, by Pollaczek and Khinchine", () => {
    const [rho, serviceMs] = [0.7, 10];
    const engine = new BatchingEngine(plain(4, serviceMs));
    const { inSystemMs } = offer(engine, 400_000, rho / serviceMs, 2, () => 0);
    const expectedMs = serviceMs + (rho * serviceMs) / (2 * (1 - rho));
    expect(Math.abs(inSystemMs / expectedMs - 1)).toBeLessThan(0.01);
  });
});

describe("an engine's KV memory", () => {
  const ids = Int32Array.from({ length: 64 }, (_, index) => index);
  const conversation = (turn: number): EngineRequest => ({
    ids,
    promptTokens: 32 * (turn + 1),
    outputTokens: 16,
    from: 0,
    promptBlocks: 2 * (turn + 1),
    afterBlocks: 2 * (turn + 1) + 1,
  });

  function serve(engine: BatchingEngine, nowMs: number, request: number, size: EngineRequest): number {
    let cached = -1;
    let ended = false;
    engine.tell({
      began: (_, tokens) => {
        cached = tokens;
      },
      firstToken() {},
      finished: () => {
        ended = true;
      },
    });
    engine.take(nowMs, request, size);
    while (!ended) engine.run(engine.nextMs());
    return cached;
  }

  it("finds the conversation so far, its answers included, and not what it never saw", () => {
    const engine = new BatchingEngine(plain(4, 1, { kvBlocks: 100 }));
    expect(serve(engine, 0, 1, conversation(0))).toBe(0);
    expect(serve(engine, 100, 2, conversation(1))).toBe(48);
    expect(serve(engine, 200, 3, { ...conversation(0), from: 40 })).toBe(0);
  });

  it("gives up the least recently used first", () => {
    const engine = new BatchingEngine(plain(4, 1, { kvBlocks: 8 }));
    serve(engine, 0, 1, conversation(0));
    serve(engine, 100, 2, { ...conversation(0), from: 20 });
    serve(engine, 200, 3, conversation(0));
    // Three blocks for each; a fourth conversation takes those of the second.
    serve(engine, 300, 4, { ...conversation(0), from: 40 });
    expect(engine.cache.find(ids, 0, 3)).toBe(3);
    expect(engine.cache.find(ids, 20, 3)).toBeLessThan(3);
  });

  it("sends the last to begin back in line when it is full, and loses no request over it", () => {
    const engine = new BatchingEngine(plain(8, 1, { kvBlocks: 20 }));
    const ended: number[] = [];
    engine.tell({ began() {}, firstToken() {}, finished: (request) => ended.push(request) });
    for (let request = 0; request < 6; request++) engine.take(0, request, bare(120, 32));
    for (let dueMs = engine.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) {
      engine.run(dueMs);
      expect(engine.cache.free).toBeGreaterThan(-1e-6);
    }
    expect(engine.preemptions).toBeGreaterThan(0);
    expect(ended.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(engine.cache.held).toBeCloseTo(0, 6);
  });

  it("serves a request that is larger than the memory alone, and the next after it", () => {
    const engine = new BatchingEngine(plain(8, 1, { kvBlocks: 20 }));
    const ended: [number, number][] = [];
    engine.tell({ began() {}, firstToken() {}, finished: (request, atMs) => ended.push([request, atMs]) });
    engine.take(0, 1, bare(50, 16 * 40));
    engine.take(0, 2, bare(10, 32));
    for (let dueMs = engine.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) engine.run(dueMs);
    expect(ended).toEqual([
      [1, expect.closeTo(51, 6)],
      [2, expect.closeTo(62, 6)],
    ]);
  });

  it("frees at once what a client that left held, and what an engine that died did", () => {
    const engine = new BatchingEngine(plain(8, 1, { kvBlocks: 100 }));
    engine.take(0, 1, conversation(1));
    engine.take(0, 2, { ...conversation(1), from: 20 });
    engine.run(2);
    expect(engine.cancel(3, 1)).toBe(true);
    expect(engine.cancel(3, 1)).toBe(false);
    expect(engine.die(4)).toEqual([2]);
    expect([engine.running, engine.waiting, engine.cache.kept]).toEqual([0, 0, 0]);
    expect(engine.cache.held).toBeCloseTo(0, 6);
  });
});

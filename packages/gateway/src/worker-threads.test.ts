import { ManualClock } from "@guidevane/core";
import { createRetryMemory } from "@guidevane/guard";
import { SlotRegistry } from "@guidevane/selector";
import { afterEach, describe, expect, it } from "vitest";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import { createStreamMemory } from "./guard-streams.ts";
import { sumMetrics } from "./metric-text.ts";
import type { MetricFigures } from "./metrics.ts";
import { createResponseMemory } from "./response-memory.ts";
import { fleetOf, silent } from "./testing/fleet.ts";
import { eventually } from "./testing/setup.ts";
import { WorkerThreads } from "./worker-threads.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** Two brief workers. */
async function start(selector: "ts" | "native") {
  const clock = new ManualClock();
  const died: number[] = [];
  const told: { readonly thread: number; readonly why: string; readonly replacedInMs: number }[] = [];
  const back: number[] = [];
  const replaced: number[] = [];
  const heard: number[] = [];
  const { gateway } = await fleetOf({ a: "http://127.0.0.1:1" });
  // These workers load none.
  const first = {} as CompiledSnapshot;
  const threads = new WorkerThreads({
    worker: new URL("./testing/brief-worker.ts", import.meta.url),
    count: 2,
    clock,
    logger: {
      ...silent,
      error: (facts) => told.push(facts as (typeof told)[number]),
      info: (facts) => back.push((facts as { thread: number }).thread),
    },
    selector,
    state: new SlotRegistry({ threads: 2 }).state,
    retryMemory: createRetryMemory(),
    streamMemory: createStreamMemory(2),
    responseMemory: createResponseMemory(),
    settings: { gateway, credentials: new Map(), clientKeys: null },
    first,
    newsOf: (thread) => ({
      attemptBegan() {},
      firstToken() {},
      attemptEnded() {},
      heard: () => heard.push(thread),
      idle() {},
      failed() {},
    }),
    onDeath: (thread) => died.push(thread),
    onReplaced: (thread) => {
      replaced.push(thread);
      return first;
    },
  });
  cleanups.push(() => threads.stop(0));
  /** What all threads counted, as soon as thread 1 tells its part. */
  const sum = async (asked: Promise<MetricFigures[]>): Promise<string> => {
    threads.controlHeard();
    return sumMetrics(await asked);
  };
  return { threads, died, told, back, replaced, heard, clock, sum };
}

describe("what a request thread counted that dies", () => {
  it("while another one is still asked is in the sum once", async () => {
    const { threads, died, heard, sum } = await start("ts");
    const asked = threads.metrics();
    await eventually(() => heard.includes(0));
    threads.setGateways(1);
    await eventually(() => died.length === 1);
    expect(await sum(asked)).toMatch(/^counted_total 2$/m);
    expect(await sum(threads.metrics())).toMatch(/^counted_total 2$/m);
  });

  it("as soon as it has told it stays in the sum when another takes its place", async () => {
    const { threads, died, clock, sum } = await start("ts");
    threads.setGateways(0);
    expect(await sum(threads.metrics())).toMatch(/^counted_total 2$/m);
    await eventually(() => died.length === 1);
    clock.advance(250);
    expect(await sum(threads.metrics())).toMatch(/^counted_total 3$/m);
  });
});

describe("request threads that die before they are told to listen", () => {
  it("are no reason to wait: it fails, with what they died of", async () => {
    const { threads, died } = await start("native");
    await eventually(() => died.length === 2);
    await expect(threads.listen({ host: "127.0.0.1", port: 0 })).rejects.toThrow("in TypeScript alone");
  });

  it("are told of once for each step of the wait, and no more at the longest", async () => {
    const { died, told, back, replaced, clock } = await start("native");
    const deathsOf = (thread: number) => died.filter((each) => each === thread).length;
    while (deathsOf(0) < 9 || deathsOf(1) < 9) {
      // All that were started.
      await eventually(() => died.length === 2 + replaced.length);
      clock.advance(10_000);
    }
    expect(told.filter(({ thread }) => thread === 0)).toHaveLength(7);
    expect(told.filter(({ thread }) => thread === 1)).toHaveLength(7);
    // Nor that there is another one, which has not lived long enough to say so.
    expect(back.filter((thread) => thread === 0)).toHaveLength(7);
    expect(back.filter((thread) => thread === 1)).toHaveLength(7);
    expect(told.every(({ why }) => why.includes("in TypeScript alone"))).toBe(true);
    // Which of the two waits for less than the step at a time is the one that died last.
    expect(Math.max(...told.map(({ replacedInMs }) => replacedInMs))).toBeLessThanOrEqual(10_000);
  });
});

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { systemClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { clockOfThread, threadZeroMs } from "./thread-clock.ts";

describe("the clock of another thread", () => {
  it("says the same here as there, though each began at its own zero", async () => {
    const beforeMs = systemClock.nowMs();
    const code =
      "const own = performance.now(); require('node:worker_threads').parentPort.postMessage({ own, zeroMs: Number(process.hrtime.bigint()) / 1e6 - performance.now() });";
    const worker = new Worker(code, { eval: true });
    const [{ own, zeroMs }] = (await once(worker, "message")) as [{ own: number; zeroMs: number }];
    const afterMs = systemClock.nowMs();
    // What the worker read is between, by either clock.
    const clock = clockOfThread(zeroMs);
    const behindMs = systemClock.nowMs() - clock.nowMs();
    expect(own + behindMs).toBeGreaterThan(beforeMs - 1);
    expect(own + behindMs).toBeLessThan(afterMs + 1);
    await worker.terminate();
  });

  it("is one's own where it is one's own", () => {
    expect(clockOfThread(threadZeroMs()).nowMs()).toBeCloseTo(systemClock.nowMs(), -1);
  });
});

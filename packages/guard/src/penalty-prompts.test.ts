import type { EngineLatency } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { expectedTimes } from "./penalty-fleet.ts";
import { PromptLengths } from "./penalty-prompts.ts";
import { engineOf } from "./snapshot.fixture.ts";

/** Alone 40 ms for 500 tokens; a queue of 60 ms at a utilisation of 0.8. */
const latency: EngineLatency = {
  ttftMs: [
    [0, 40],
    [0.8, 100],
  ],
  tbotMs: [
    [0, 10],
    [0.8, 14],
  ],
  prefillMsPerTok: 0.06,
  promptTokens: 500,
};
const engine = { ...engineOf(4, 10), rttMs: 5, latency };

describe("the prompts that a new one has to wait for", () => {
  it("are as long as a moment of reading finds them, not as a request is on average", () => {
    const prompts = new PromptLengths();
    for (let i = 0; i < 200; i++) prompts.add("a", i % 10 === 0 ? 9000 : 1000);
    // Of 18,000 tokens read 9,000 are of long prompts.
    expect(Math.abs(prompts.met("a") - 5000)).toBeLessThan(250);
    expect(prompts.met("b")).toBe(0);
  });

  it("are those of late: what an engine was sent before fades", () => {
    const prompts = new PromptLengths();
    for (let i = 0; i < 500; i++) prompts.add("a", 9000);
    for (let i = 0; i < 5000; i++) prompts.add("a", 1000);
    expect(Math.abs(prompts.met("a") - 1000)).toBeLessThan(10);
  });

  it("are forgotten with their engine", () => {
    const prompts = new PromptLengths();
    for (const id of ["a", "b"]) prompts.add(id, 700);
    prompts.keep({ b: engine });
    expect([prompts.met("a"), prompts.met("b")]).toEqual([0, 700]);
  });
});

describe("the time to a first token", () => {
  const { ttftMs } = expectedTimes(engine)!;

  it("is the profile's where all prompts are the profile's", () => {
    expect(ttftMs(500, 500)).toBeCloseTo(5 + 100, 9);
    expect(ttftMs(1500, 500)).toBeCloseTo(5 + 100 + 60, 9);
  });

  it("has a queue as many times as long as the prompts in it take to read, and no shorter one than the profile's", () => {
    // 2,500 tokens take 160 ms, four times the reference's 40.
    expect(ttftMs(500, 2500)).toBeCloseTo(5 + 40 + 4 * 60, 9);
    for (const metTokens of [0, 100]) expect(ttftMs(500, metTokens)).toBeCloseTo(5 + 100, 9);
  });

  it("has the same queue behind any prompts where prompts take no time to read", () => {
    const free = expectedTimes({ ...engine, latency: { ...latency, prefillMsPerTok: 0 } })!;
    expect(free.ttftMs(500, 9000)).toBeCloseTo(5 + 100, 9);
  });

  it("is not known where queues form by chance", () => {
    expect(expectedTimes({ ...engine, loadWps: 8 })!.ttftMs(500, 500)).toBeNull();
  });
});

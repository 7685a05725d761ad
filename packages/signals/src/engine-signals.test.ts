import { describe, expect, it } from "vitest";
import type { Reading } from "./dialects/dialect.ts";
import { SignalBook } from "./engine-signals.ts";

const none = { promptTokens: new Map(), generationTokens: new Map(), successes: new Map() };
const reading = (signals: Partial<Reading["signals"]>): Reading => ({
  signals: { running: 0, waiting: 0, kvUsage: 0, readyReplicas: "not-offered", ...signals },
  counters: none,
});

describe("the signals of an engine", () => {
  it("are missing, not zero, before the first page; ready replicas are not owed", () => {
    const { running, readyReplicas } = new SignalBook("vllm", 6000).at(0);
    expect(running).toEqual({ value: null, state: "missing", ageMs: null });
    expect(readyReplicas).toEqual({ value: null, state: "not-offered", ageMs: null });
  });

  it("are not offered by a kind without metrics", () => {
    expect(Object.values(new SignalBook("openai", 6000).at(0)).map((each) => each.state)).toEqual(
      Array(4).fill("not-offered"),
    );
  });

  it("go from fresh to stale with age, and keep value and age", () => {
    const book = new SignalBook("vllm", 6000);
    book.observe(reading({ running: 3 }), 1000);
    expect(book.at(1900).running).toEqual({ value: 3, state: "fresh", ageMs: 900 });
    expect(book.at(7000).running).toMatchObject({ state: "fresh" });
    expect(book.at(7001).running).toEqual({ value: 3, state: "stale", ageMs: 6001 });
  });

  it("become missing as soon as a page lacks them, without waiting to grow old", () => {
    const book = new SignalBook("vllm", 6000);
    book.observe(reading({ waiting: 9, readyReplicas: 2 }), 0);
    book.observe(reading({ waiting: "missing" }), 1000);
    expect(book.at(1000).waiting).toEqual({ value: null, state: "missing", ageMs: null });
    expect(book.at(1000).readyReplicas.state).toBe("not-offered");
    expect(book.at(1000).running).toEqual({ value: 0, state: "fresh", ageMs: 0 });
  });

  it("have rates from their counters", () => {
    const book = new SignalBook("vllm", 6000);
    const at = (tokens: number) => ({ ...reading({}), counters: { ...none, promptTokens: new Map([["a", tokens]]) } });
    book.observe(at(100), 0);
    book.observe(at(500), 2000);
    expect(book.rates(2000)).toEqual({ promptTokens: 200, generationTokens: null, successes: null });
  });
});

import { ManualClock, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { Collector, type ScrapeResult } from "./collect.ts";
import type { ProbeOutcome, Prober } from "./engine-probe.ts";
import { testFleet } from "./testing/fleet.ts";

const page = (body: string): ProbeOutcome => ({ kind: "answer", status: 200, body });
const METRICS = "vllm:num_requests_running 3\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.5\n";

/** Answers as told and keeps when it was asked what. */
class TestProber implements Prober {
  readonly asked: { what: string; atMs: number }[] = [];
  readonly answers = new Map<string, ProbeOutcome | Promise<ProbeOutcome>>();
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  async ask(engine: { id: string }, _probe: unknown, path: string): Promise<ProbeOutcome> {
    const what = `${engine.id}${path}`;
    this.asked.push({ what, atMs: this.#clock.nowMs() });
    return this.answers.get(what) ?? page(path === "/metrics" ? METRICS : "");
  }

  async close(): Promise<void> {}

  times(what: string): number[] {
    return this.asked.filter((each) => each.what === what).map((each) => each.atMs);
  }
}

async function collect(seed = 1) {
  const clock = new ManualClock();
  const prober = new TestProber(clock);
  const changes: string[] = [];
  const scrapes: [string, ScrapeResult][] = [];
  const collector = new Collector({
    fleet: await testFleet(),
    prober,
    clock,
    random: seededRandom(seed),
    onChange: (id) => changes.push(id),
    onScrape: (id, result) => scrapes.push([id, result]),
  });
  /** Moves time in small steps, letting answers come in between. */
  const pass = async (ms: number) => {
    for (let step = 0; step < ms; step += 100) {
      clock.advance(100);
      await new Promise(setImmediate);
    }
  };
  return { clock, prober, collector, changes, scrapes, pass };
}

describe("the collector", () => {
  it("knows every engine once started", async () => {
    const { collector, scrapes } = await collect();
    await collector.start();
    expect(collector.of("e1")).toMatchObject({
      probed: { health: "ready" },
      signals: { running: { value: 3, state: "fresh", ageMs: 0 } },
    });
    expect(scrapes).toEqual([
      ["e1", "ok"],
      ["e2", "ok"],
    ]);
    expect(collector.of("e9")).toBeUndefined();
  });

  it("asks a llama.cpp for its slots too, and reads a page as what it is, not as the fleet file says", async () => {
    const { collector, prober } = await collect();
    const text = "llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n";
    prober.answers.set("e1/metrics", page(text));
    prober.answers.set("e1/slots", page('[{"is_processing":true},{"is_processing":false}]'));
    prober.answers.set("e2/metrics", page(text));
    prober.answers.set("e2/slots", { kind: "answer", status: 501, body: "" });
    await collector.start();
    expect(collector.of("e1")?.signals).toMatchObject({
      running: { value: 2, state: "fresh" },
      waiting: { value: 1 },
      kvUsage: { value: 0.5, state: "fresh" },
    });
    expect(collector.of("e2")?.signals.kvUsage).toMatchObject({ value: null, state: "not-offered" });
  });

  it("asks each engine about every two seconds, and not all at the same instants", async () => {
    const { collector, prober, pass } = await collect();
    await collector.start();
    await pass(60_000);
    const times = prober.times("e1/metrics");
    const gaps = times.slice(1).map((at, i) => at - times[i]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1800);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2300);
    const others = new Set(prober.times("e2/metrics").slice(1));
    expect(times.slice(1).filter((at) => others.has(at)).length).toBeLessThan(times.length / 4);
  });

  it("never has two questions of a kind at one engine under way", async () => {
    const { collector, prober, pass } = await collect();
    await collector.start();
    prober.answers.set("e1/metrics", new Promise(() => {}));
    await pass(20_000);
    expect(prober.times("e1/metrics")).toHaveLength(2);
    expect(prober.times("e2/metrics").length).toBeGreaterThan(7);
  });

  it("B129: lets the last values grow stale when scrapes fail, and makes them missing when the page lacks them", async () => {
    const { collector, prober, scrapes, pass } = await collect();
    await collector.start();
    prober.answers.set("e1/metrics", { kind: "timeout", message: "late" });
    prober.answers.set("e2/metrics", page("vllm:num_requests_running 1\n"));
    await pass(7000);
    expect(collector.of("e1")?.signals.running).toMatchObject({ value: 3, state: "stale" });
    expect(collector.of("e2")?.signals.running).toMatchObject({ value: 1, state: "fresh" });
    expect(collector.of("e2")?.signals.waiting).toEqual({ value: null, state: "missing", ageMs: null });
    expect(scrapes.filter(([, result]) => result === "timeout").length).toBeGreaterThanOrEqual(3);
  });

  it.each([
    [{ kind: "answer", status: 500, body: METRICS }, "http-error"],
    [page("<html></html>\n"), "no-metrics"],
    [{ kind: "too-large", message: "big" }, "too-large"],
    [{ kind: "refused", message: "no" }, "refused"],
    [{ kind: "failed", message: "reset" }, "failed"],
  ] as [ProbeOutcome, ScrapeResult][])("tells how a scrape ended: %j is %s", async (outcome, result) => {
    const { collector, prober, scrapes } = await collect();
    prober.answers.set("e1/metrics", outcome);
    await collector.start();
    expect(scrapes).toContainEqual(["e1", result]);
  });

  it("tells of a change of health and of ready replicas, once each", async () => {
    const { collector, prober, changes, pass } = await collect();
    await collector.start();
    changes.length = 0;
    await pass(5000);
    expect(changes).toEqual([]);
    prober.answers.set("e1/health", { kind: "refused", message: "no" });
    prober.answers.set("e2/metrics", page(`${METRICS}guidevane_emulator_ready_replicas 1\n`));
    await pass(10_000);
    expect(changes.sort()).toEqual(["e1", "e2"]);
  });

  it("finds a dead engine's return within 3 s: the second good answer is asked for early", async () => {
    const { collector, prober, pass } = await collect();
    prober.answers.set("e1/health", { kind: "refused", message: "no" });
    await collector.start();
    await pass(7000);
    expect(collector.of("e1")?.probed.health).toBe("dead");
    prober.answers.delete("e1/health");
    await pass(3000);
    expect(collector.of("e1")?.probed.health).toBe("ready");
  });

  it("asks nothing more once stopped", async () => {
    const { collector, prober, pass } = await collect();
    await collector.start();
    await pass(3000);
    collector.stop();
    const before = prober.asked.length;
    await pass(10_000);
    expect(prober.asked).toHaveLength(before);
  });
});

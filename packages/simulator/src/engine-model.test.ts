import { GENERIC_PROFILE, ManualClock, type Profile, seededRandom, valueAt } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type Answering, EngineModel, type EngineModelOptions, type ModelRequest } from "./engine-model.ts";
import { BatchingEngine } from "./lab/batching-engine.ts";
import { engineParameters } from "./lab/engine-parameters.ts";
import { NO_BLOCKS, promptBlocksOf } from "./prompt-blocks.ts";

/** 40 ms to the first token, 12.8 of them reading; 10 ms a token; both grow with the load. */
const profile: Profile = {
  ...GENERIC_PROFILE,
  reference: { promptTokens: 64, outputTokens: 16 },
  work: { prefillPerKtok: 3.125, decodePerKtok: 50 },
  prefillMsPerTok: 0.2,
  capacityWps: 20,
  ttftMs: [
    [0, 40],
    [0.7, 60],
    [1, 180],
  ],
  tbotMs: [
    [0, 10],
    [0.7, 11],
    [1, 25],
  ],
};
const reference: ModelRequest = { ...profile.reference, blocks: NO_BLOCKS, key: 0 };

function modelOn(clock: ManualClock, options: Partial<EngineModelOptions> = {}): EngineModel {
  return new EngineModel({ profile, clock, ...options });
}

/** What became of one request, by the clock. */
interface Seen {
  cached: number | null;
  firstMs: number | null;
  readonly tokens: [count: number, atMs: number][];
  endedMs: number | null;
}

function ask(
  model: EngineModel,
  clock: ManualClock,
  request: Partial<ModelRequest> = {},
  streams = true,
): { seen: Seen; id: number } {
  const seen: Seen = { cached: null, firstMs: null, tokens: [], endedMs: null };
  const answer: Answering = {
    began: (cached) => {
      seen.cached = cached;
    },
    first: () => {
      seen.firstMs = clock.nowMs();
    },
    ended: () => {
      seen.endedMs = clock.nowMs();
    },
  };
  const tokens = (count: number) => void seen.tokens.push([count, clock.nowMs()]);
  return { seen, id: model.take({ ...reference, ...request }, streams ? { ...answer, tokens } : answer) };
}

describe("an engine on a clock that runs by itself", () => {
  it("streams an idle engine's tokens at the times that its profile says", () => {
    const clock = new ManualClock();
    const { seen } = ask(modelOn(clock), clock);
    for (let ms = 0; ms < 400; ms++) clock.advance(1);
    expect(seen.firstMs).toBeCloseTo(40, 0);
    expect(seen.tokens.map(([count]) => count)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
    for (const [count, atMs] of seen.tokens) {
      // Timers round up to a whole millisecond; nothing is early.
      expect(atMs).toBeGreaterThanOrEqual(40 + 10 * (count - 1) - 0.01);
      expect(atMs).toBeLessThan(40 + 10 * (count - 1) + 1.2);
    }
    expect(seen.endedMs! - 200).toBeLessThan(1.2);
    expect(seen.endedMs! - 200).toBeGreaterThan(-0.01);
  });

  it("gives every answer the time that the lab's engine gives it", () => {
    const clock = new ManualClock();
    const model = modelOn(clock);
    const parameters = engineParameters(profile, 20, { blockTokens: 16, kvTokens: 1e6 });
    const lab = new BatchingEngine(parameters);
    const labMs: number[] = [];
    lab.tell({ began() {}, firstToken() {}, finished: (request, atMs) => labMs.splice(request, 1, atMs) });
    const random = seededRandom(6);
    const answers: Seen[] = [];
    const { promptTokens, outputTokens } = reference;
    let nowMs = 0;
    for (let request = 0; request < 2000; request++) {
      const gapMs = (-Math.log(1 - random()) * 1000) / 17;
      nowMs += gapMs;
      clock.advance(gapMs);
      answers.push(ask(model, clock, {}, request % 2 === 0).seen);
      labMs.push(0);
      // The overhead, which is the last part of a TTFT there, is the first here.
      const entersMs = nowMs + parameters.overheadMs;
      for (let dueMs = lab.nextMs(); dueMs <= entersMs; dueMs = lab.nextMs()) lab.run(dueMs);
      const none = { ids: NO_BLOCKS.ids, from: 0, promptBlocks: 0, afterBlocks: 0 };
      lab.take(entersMs, request, { promptTokens, outputTokens, ...none });
    }
    for (let dueMs = lab.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = lab.nextMs()) lab.run(dueMs);
    clock.advance(60_000);
    const late = answers.map(({ endedMs }, request) => endedMs! - (labMs[request]! - parameters.overheadMs));
    expect(Math.min(...late)).toBeGreaterThan(-0.05);
    expect(Math.max(...late)).toBeLessThan(1.05);
    expect(model.running + model.waiting).toBe(0);
    // Never below 0, which no reader of metrics would take for a number.
    expect(model.kvUsage).toBeGreaterThanOrEqual(0);
    expect(model.kvUsage).toBeCloseTo(0, 9);
  });

  it.each([0.5, 0.8, 0.9])("has its profile's mean latency at %f of its load, on every replica", (rho) => {
    const clock = new ManualClock();
    const model = modelOn(clock, { replicas: 2 });
    const random = seededRandom(11);
    const took: number[] = [];
    for (let request = 0; request < 12_000; request++) {
      clock.advance((-Math.log(1 - random()) * 1000) / (2 * rho * 20));
      const askedMs = clock.nowMs();
      const ended = () => void took.push(clock.nowMs() - askedMs);
      model.take({ ...reference, key: Math.floor(random() * 1e6) }, { first() {}, ended });
    }
    const mean = took.reduce((sum, ms) => sum + ms, 0) / took.length;
    const expected = valueAt(profile.ttftMs, rho) + reference.outputTokens * valueAt(profile.tbotMs, rho);
    // Two to ten decode at once here: chance moves the step more than where there are many.
    expect(Math.abs(mean / expected - 1)).toBeLessThan(0.13);
  });

  it("holds one timer, however many streams it has", () => {
    const clock = new ManualClock();
    const timers = new Set<number>();
    let made = 0;
    const counting = {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      after: (delayMs: number, task: () => void) => {
        const id = made++;
        timers.add(id);
        expect(timers.size).toBe(1);
        const cancel = clock.after(delayMs, () => {
          timers.delete(id);
          task();
        });
        return () => {
          timers.delete(id);
          cancel();
        };
      },
    };
    const model = new EngineModel({ profile, clock: counting, replicas: 3 });
    for (let i = 0; i < 40; i++) {
      ask(model, clock, { key: i });
      clock.advance(2.5);
    }
    clock.advance(5000);
    expect(model.running).toBe(0);
    // 640 tokens, and a beginning and an end for each of 40.
    expect(made).toBeLessThan(750);
  });
});

describe("an engine's memory on a real clock", () => {
  const turn = (prompt: string, answer: string) => ({
    promptTokens: Math.ceil(prompt.length / 4),
    blocks: promptBlocksOf(prompt, `\n${answer}`, 64),
  });
  const first = "a long question ".repeat(20);
  const answer = "a long answer ".repeat(10);

  it("finds a conversation that comes back, answer included, and not another's", () => {
    const clock = new ManualClock();
    const model = modelOn(clock);
    const { seen } = ask(model, clock, turn(first, answer));
    clock.advance(1000);
    const { seen: again } = ask(model, clock, turn(`${first}\n${answer}\nand then?`, "so"));
    clock.advance(1000);
    const { seen: other } = ask(model, clock, turn(`b${first}`, answer));
    clock.advance(1000);
    expect(seen.cached).toBe(0);
    // 320 + 1 + 140 bytes are 7 blocks of 64.
    expect(again.cached).toBe(112);
    expect(other.cached).toBe(0);
  });

  it("reads only what it does not find", () => {
    const [cold, warm] = [false, true].map((known) => {
      const clock = new ManualClock();
      const model = modelOn(clock);
      if (known) ask(model, clock, turn(first, answer));
      clock.advance(1000);
      const { seen } = ask(model, clock, turn(first, answer));
      clock.advance(1000);
      return seen.firstMs! - 1000;
    });
    // 79 tokens at 0.2 ms; the last one is always read.
    expect(cold! - warm!).toBeGreaterThan(12);
  });

  it("sends the youngest back in line when it is full, and streams on from where it was", () => {
    const clock = new ManualClock();
    const model = modelOn(clock, { kvTokens: 16 * 16 });
    const all = Array.from({ length: 4 }, () => ask(model, clock, { promptTokens: 32, outputTokens: 60 }).seen);
    clock.advance(20_000);
    expect(model.preemptions).toBeGreaterThan(0);
    for (const { tokens, endedMs } of all) {
      expect(endedMs).not.toBeNull();
      const counts = tokens.map(([count]) => count);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      expect(new Set(counts).size).toBe(counts.length);
    }
  });
});

describe("what can be done to an engine", () => {
  it("takes a slowdown as longer steps and less capacity, also for what runs", () => {
    const clock = new ManualClock();
    const model = modelOn(clock);
    const { seen: before } = ask(model, clock);
    clock.advance(100);
    model.slowdown = 4;
    expect(model.capacityWps).toBe(5);
    clock.advance(2000);
    // 60 ms are done of 160 ms of tokens; the other 100 take four times as long.
    expect(before.endedMs! - 500).toBeLessThan(1.2);
    expect(before.endedMs! - 500).toBeGreaterThan(-0.01);
    const { seen } = ask(model, clock);
    clock.advance(2000);
    expect(seen.endedMs! - 2100 - 800).toBeLessThan(2);
  });

  it("lets replicas that are no longer ready finish, and gives them nothing new", () => {
    const clock = new ManualClock();
    const model = modelOn(clock, { replicas: 2, capacityWps: 7 });
    expect(model.capacityWps).toBe(14);
    const { seen } = ask(model, clock, { key: 1 });
    model.readyReplicas = 0;
    expect(model.capacityWps).toBe(0);
    clock.advance(1000);
    expect(seen.endedMs).not.toBeNull();
  });

  it("frees what a client held that goes, whether it had entered, waited or decoded", () => {
    const clock = new ManualClock();
    const model = modelOn(clock);
    const all = Array.from({ length: 40 }, () => ask(model, clock, { outputTokens: 500 }));
    clock.advance(1500);
    all.push(ask(model, clock));
    expect(model.waiting).toBeGreaterThan(0);
    for (const { id } of all) model.cancel(id);
    expect([model.running, model.waiting]).toEqual([0, 0]);
    expect(model.kvUsage).toBeCloseTo(0, 9);
    clock.advance(60_000);
    expect(all.every(({ seen }) => seen.endedMs === null)).toBe(true);
  });

  it("spreads decoding by the jitter asked for without moving the mean", () => {
    const clock = new ManualClock();
    const model = modelOn(clock, { random: seededRandom(5), jitter: 0.2 });
    const took = Array.from({ length: 3000 }, () => {
      const { seen } = ask(model, clock);
      clock.advance(2000);
      return seen.endedMs! - seen.firstMs!;
    });
    const mean = took.reduce((sum, ms) => sum + ms, 0) / took.length;
    const deviation = Math.sqrt(took.reduce((sum, ms) => sum + (ms - mean) ** 2, 0) / took.length);
    expect(mean / 160).toBeCloseTo(1, 1);
    expect(deviation / mean).toBeCloseTo(0.2, 1);
  });
});

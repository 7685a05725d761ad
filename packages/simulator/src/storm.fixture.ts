import { loadFleet, ManualClock, type Random, seededRandom } from "@guidevane/core";
import {
  Admission,
  type AttemptEnd,
  afterAttempt,
  createRetryMemory,
  RetryBudget,
  RetryKeeper,
} from "@guidevane/guard";
import { bootstrapSnapshot } from "@guidevane/selector";
import { EventHeap } from "./lab/event-heap.ts";

/**
 * Does a fleet come back after a trigger, or do its own retries keep it down? (Bronson and others, "Metastable failures in
 * distributed systems", HotOS 2021.) Two engines of ten places each serve 0.2 s a request; who waits for more than a second
 * is lost to its client. The gateway's door and retry budget are the production code, other rules stand beside them.
 */
export const POLICIES = ["guidevane", "no retries", "four attempts", "budget of 20 %"] as const;
export type StormPolicy = (typeof POLICIES)[number];

export const TRIGGERS = [
  "half the capacity",
  "three times the demand",
  "a slow region",
  "cold caches",
  "503s",
] as const;
export type Trigger = (typeof TRIGGERS)[number];

export interface StormOptions {
  readonly policy: StormPolicy;
  readonly trigger: Trigger;
  /** First attempts ÷ capacity before and after the trigger. */
  readonly utilisation: number;
  /** Engines drop work whose client has left; else they do it all the same. */
  readonly cancels: boolean;
  readonly seed: number;
}

export interface Storm {
  /** From the end of the trigger until 97 % of requests are answered and go on being so, s; infinite = not within the run. */
  readonly recoveryS: number;
  /** Most attempts ÷ first attempts in any 10 s; requests that were not let in make neither. */
  readonly amplification: number;
}

const SERVICE_MS = 200;
const PLACES = 10;
export const CAPACITY_RPS = (2 * PLACES * 1000) / SERVICE_MS;
const PATIENCE_MS = 1000;
const BEGIN_MS = 20_000;
const LASTS_MS: Readonly<Record<Trigger, number>> = {
  "half the capacity": 15_000,
  "three times the demand": 10_000,
  "a slow region": 15_000,
  "cold caches": 20_000,
  "503s": 15_000,
};
const RUN_MS = 240_000;
const TICK_MS = 250;
const GOOD = 0.97;
/** Goodput is judged over so many seconds. */
const WINDOW_S = 5;
const ATTEMPTS_NAIVE = 4;
/** A request's time at an engine that is nearly full, as a plan would say. */
const BUSY_MS = 350;

const EVENT = { arrive: 0, done: 1, patience: 2, tick: 3, begin: 4, end: 5 } as const;
const REFUSED: AttemptEnd = { kind: "answer", status: 503, servesModel: true, retryAfterMs: null };
const WAITS = 0;
const SERVED = 1;
const OVER = 2;

interface Engine {
  places: number;
  slowness: number;
  busy: number;
  readonly waiting: number[];
}

export async function runStorm(options: StormOptions): Promise<Storm> {
  const text = `
clusters: { c: { region: r } }
engines:
  near: { url: "http://near", region: r, models: [m], capacityWps: ${CAPACITY_RPS / 2} }
  far: { url: "http://far", region: r, models: [m], capacityWps: ${CAPACITY_RPS / 2} }
classes: { m: { model: m, work: 1 } }`;
  const fleet = await loadFleet(text, "fleet.yaml", () => Promise.reject(new Error("no files here")));
  const loadWps = (options.utilisation * CAPACITY_RPS) / 2;
  const base = bootstrapSnapshot(fleet, "c");
  const engines = Object.fromEntries(Object.entries(base.engines).map(([id, each]) => [id, { ...each, loadWps }]));
  const cells = base.cells.map((cell) => ({ ...cell, demandRps: 2 * loadWps }));
  return new StormRun(options, { ...base, engines, cells }).run();
}

class StormRun {
  readonly #options: StormOptions;
  readonly #random: Random;
  readonly #clock = new ManualClock();
  readonly #heap = new EventHeap();
  readonly #engines: readonly Engine[] = [0, 1].map(() => ({ places: PLACES, slowness: 1, busy: 0, waiting: [] }));
  readonly #admission: Admission;
  readonly #budget: RetryBudget;
  readonly #keeper: RetryKeeper;
  readonly #rows;
  // By attempt.
  readonly #requestOf: number[] = [];
  readonly #engineOf: number[] = [];
  readonly #stateOf: number[] = [];
  // By request.
  readonly #arrivedMs: number[] = [];
  readonly #tries: number[] = [];
  readonly #answered: boolean[] = [];
  // By second.
  readonly #firsts = new Float64Array(RUN_MS / 1000);
  readonly #attempts = new Float64Array(RUN_MS / 1000);
  #triggered = false;
  #tokens = 0;

  constructor(options: StormOptions, snapshot: ReturnType<typeof bootstrapSnapshot>) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    const limits = { maxStreams: 1e9, queue: 0, queueMs: 0 };
    this.#admission = new Admission(this.#clock, limits);
    const streamLimit = (1.25 * CAPACITY_RPS * BUSY_MS) / 1000;
    const hard = Number.POSITIVE_INFINITY;
    this.#admission.adopt(
      [{ name: "m", model: "m", priority: 0, streamLimit, work: 1, streamWps: 1000 / BUSY_MS, engineLimit: hard }],
      limits,
    );
    const memory = createRetryMemory();
    const settings = { maxRatio: 0.2, floorPer10s: 1, startTokens: 3 };
    this.#keeper = new RetryKeeper(memory, () => settings, 0);
    this.#rows = this.#keeper.rowsOf(snapshot).get("m")!;
    this.#keeper.adopt(snapshot);
    this.#budget = new RetryBudget(memory);
  }

  run(): Storm {
    const heap = this.#heap;
    heap.put(0, EVENT.arrive, 0, 0);
    heap.put(0, EVENT.tick, 0, 0);
    heap.put(BEGIN_MS, EVENT.begin, 0, 0);
    heap.put(BEGIN_MS + LASTS_MS[this.#options.trigger], EVENT.end, 0, 0);
    while (heap.nextMs < RUN_MS) {
      const { kind, subject, nextMs } = heap;
      heap.drop();
      this.#clock.advance(nextMs - this.#clock.nowMs());
      if (kind === EVENT.arrive) this.#arrive(nextMs);
      else if (kind === EVENT.done) this.#done(subject, nextMs);
      else if (kind === EVENT.patience) this.#impatient(subject, nextMs);
      else if (kind === EVENT.tick) {
        this.#keeper.refresh(nextMs, () => 1);
        heap.put(nextMs + TICK_MS, EVENT.tick, 0, 0);
      } else this.#trigger(kind === EVENT.begin, nextMs);
    }
    return { recoveryS: this.#recoveryS(), amplification: this.#amplification() };
  }

  #trigger(on: boolean, nowMs: number): void {
    this.#triggered = on;
    const { trigger } = this.#options;
    for (const [at, engine] of this.#engines.entries()) {
      if (trigger === "half the capacity") engine.places = on ? PLACES / 2 : PLACES;
      if (trigger === "a slow region" && at === 1) engine.slowness = on ? 3 : 1;
      if (trigger === "cold caches") engine.slowness = on ? 1.5 : 1;
      this.#serveNext(engine, nowMs);
    }
  }

  #arrive(nowMs: number): void {
    const { utilisation, trigger, policy } = this.#options;
    const times = this.#triggered && trigger === "three times the demand" ? 3 : 1;
    const gapMs = (-Math.log(1 - this.#random()) * 1000) / (utilisation * CAPACITY_RPS * times);
    this.#heap.put(nowMs + gapMs, EVENT.arrive, 0, 0);
    const request = this.#arrivedMs.push(nowMs) - 1;
    this.#tries.push(0);
    this.#answered.push(false);
    if (policy === "guidevane") {
      if (this.#admission.ask("m", null).kind !== "admitted") return;
      this.#budget.firstAttempt(this.#rows, 1, true);
    }
    this.#tokens = Math.min(0.2 * CAPACITY_RPS * 10, this.#tokens + 0.2);
    this.#firsts[Math.floor(nowMs / 1000)]! += 1;
    this.#attempt(request, this.#random() < 0.5 ? 0 : 1, nowMs);
  }

  #attempt(request: number, at: number, nowMs: number): void {
    this.#tries[request]! += 1;
    this.#attempts[Math.floor(nowMs / 1000)]! += 1;
    const attempt = this.#requestOf.push(request) - 1;
    this.#engineOf.push(at);
    const refuses = this.#triggered && this.#options.trigger === "503s" && at === 0 && this.#random() < 0.5;
    this.#stateOf.push(refuses ? OVER : WAITS);
    if (refuses) {
      this.#failed(request, at, REFUSED, nowMs);
      return;
    }
    this.#heap.put(nowMs + PATIENCE_MS, EVENT.patience, attempt, 0);
    const engine = this.#engines[at]!;
    engine.waiting.push(attempt);
    this.#serveNext(engine, nowMs);
  }

  #serveNext(engine: Engine, nowMs: number): void {
    while (engine.busy < engine.places && engine.waiting.length > 0) {
      const attempt = engine.waiting.shift()!;
      if (this.#stateOf[attempt] === OVER && this.#options.cancels) continue;
      engine.busy += 1;
      if (this.#stateOf[attempt] === WAITS) this.#stateOf[attempt] = SERVED;
      const serviceMs = SERVICE_MS * engine.slowness * (0.8 + 0.4 * this.#random());
      this.#heap.put(nowMs + serviceMs, EVENT.done, attempt, 0);
    }
  }

  /** Its place is free again; so it was at once if it was cancelled. */
  #done(attempt: number, nowMs: number): void {
    const engine = this.#engines[this.#engineOf[attempt]!]!;
    const request = this.#requestOf[attempt]!;
    const gone = this.#stateOf[attempt] === OVER;
    if (gone && this.#options.cancels) return;
    engine.busy -= 1;
    this.#serveNext(engine, nowMs);
    if (gone) return;
    this.#stateOf[attempt] = OVER;
    this.#answered[request] = true;
    this.#leave();
  }

  #impatient(attempt: number, nowMs: number): void {
    const state = this.#stateOf[attempt];
    if (state === OVER) return;
    this.#stateOf[attempt] = OVER;
    const engine = this.#engines[this.#engineOf[attempt]!]!;
    if (this.#options.cancels && state === SERVED) {
      engine.busy -= 1;
      this.#serveNext(engine, nowMs);
    }
    this.#failed(this.#requestOf[attempt]!, this.#engineOf[attempt]!, { kind: "timer" }, nowMs);
  }

  #failed(request: number, at: number, end: AttemptEnd, nowMs: number): void {
    if (this.#mayRetry(request, end)) this.#attempt(request, 1 - at, nowMs);
    else this.#leave();
  }

  #mayRetry(request: number, end: AttemptEnd): boolean {
    const attempts = this.#tries[request]!;
    switch (this.#options.policy) {
      case "no retries":
        return false;
      case "four attempts":
        return attempts < ATTEMPTS_NAIVE;
      case "budget of 20 %":
        if (attempts >= ATTEMPTS_NAIVE || this.#tokens < 1) return false;
        this.#tokens -= 1;
        return true;
      case "guidevane": {
        const seen = { attempts, attemptsMax: 2, freshTried: false, leavesTrace: false };
        return afterAttempt(end, seen, 0.5).retry === "other" && this.#budget.take(this.#rows, 1);
      }
    }
  }

  #leave(): void {
    if (this.#options.policy === "guidevane") this.#admission.leave("m");
  }

  #recoveryS(): number {
    const all = new Float64Array(RUN_MS / 1000);
    const good = new Float64Array(RUN_MS / 1000);
    for (const [request, arrivedMs] of this.#arrivedMs.entries()) {
      all[Math.floor(arrivedMs / 1000)]! += 1;
      if (this.#answered[request]) good[Math.floor(arrivedMs / 1000)]! += 1;
    }
    const endS = (BEGIN_MS + LASTS_MS[this.#options.trigger]) / 1000;
    // What arrived in the last seconds of the run may still be under way.
    for (let second = RUN_MS / 1000 - 10; second >= endS; second--) {
      const part = sum(good, second, WINDOW_S) / sum(all, second, WINDOW_S);
      if (part < GOOD) return second + WINDOW_S >= RUN_MS / 1000 - 10 ? Number.POSITIVE_INFINITY : second + 1 - endS;
    }
    return 0;
  }

  #amplification(): number {
    let most = 1;
    for (let second = 0; second + 10 <= RUN_MS / 1000; second++)
      most = Math.max(most, sum(this.#attempts, second, 10) / sum(this.#firsts, second, 10));
    return most;
  }
}

function sum(values: Float64Array, from: number, count: number): number {
  let total = 0;
  for (let at = from; at < from + count; at++) total += values[at]!;
  return total;
}

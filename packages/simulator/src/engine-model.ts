import { type Clock, type Profile, type Random, standardNormal } from "@guidevane/core";
import { BatchingEngine, type EngineSink } from "./lab/batching-engine.ts";
import { type EngineParameters, engineParameters } from "./lab/engine-parameters.ts";
import { EventHeap } from "./lab/event-heap.ts";
import type { PromptBlocks } from "./prompt-blocks.ts";

/**
 * The lab's engine on a clock that runs by itself: the same replicas, which the lab steps from event to event in virtual
 * time, are run here when the clock says that something is due, at the instants at which it was due.
 *
 * One timer for the whole engine is aimed at what comes next: a request that enters, a prompt read, a token of a stream, an
 * end. It is moved only when something sooner turns up, so that a busy engine wakes about once a millisecond.
 */
export class EngineModel implements EngineSink {
  readonly parameters: EngineParameters;
  readonly #capacityWps: number;
  readonly #overheadMs: number;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #random: Random | null;
  readonly #jitter: number;
  readonly #replicas: Replica[] = [];
  readonly #requests = new Map<number, Running>();
  #readyReplicas = 0;
  #slowdown = 1;
  #nextId = 0;
  #timerMs = Number.POSITIVE_INFINITY;
  #cancelTimer = () => {};

  constructor(options: EngineModelOptions) {
    const { profile, clock, kvTokens } = options;
    this.#capacityWps = options.capacityWps ?? profile.capacityWps;
    const room = Math.max(BLOCK_TOKENS, kvTokens ?? usualKvTokens(profile, this.#capacityWps));
    const memory = { blockTokens: BLOCK_TOKENS, kvTokens: room };
    const parameters = engineParameters(profile, this.#capacityWps, memory);
    this.#overheadMs = parameters.overheadMs;
    // Spent here before a request enters, which costs it as much as after its first token and keeps tokens in step.
    this.parameters = { ...parameters, overheadMs: 0 };
    this.#clock = clock;
    // Small numbers keep fractions of a millisecond exact for longer.
    this.#startMs = clock.nowMs();
    this.#random = options.random ?? null;
    this.#jitter = options.random === undefined ? 0 : (options.jitter ?? 0);
    this.readyReplicas = options.replicas ?? 1;
  }

  /** Work units/s that it can do now; 0 without ready replicas. */
  get capacityWps(): number {
    return (this.#capacityWps * this.#readyReplicas) / this.#slowdown;
  }

  get readyReplicas(): number {
    return this.#readyReplicas;
  }

  /** Replicas that are no longer ready finish what they have. */
  set readyReplicas(count: number) {
    this.#readyReplicas = count;
    while (this.#replicas.length < count) {
      const engine = new BatchingEngine(this.parameters);
      engine.setSlowdown(this.#nowMs(), this.#slowdown);
      engine.tell(this);
      this.#replicas.push({ engine, entering: [], streams: new EventHeap(64) });
    }
  }

  /** Every step takes this many times as long, so that it also holds that much less. 1 = as its profile says. */
  get slowdown(): number {
    return this.#slowdown;
  }

  set slowdown(factor: number) {
    this.#runAll();
    this.#slowdown = factor;
    for (const { engine } of this.#replicas) engine.setSlowdown(this.#nowMs(), factor);
    this.#aim();
  }

  /** Requests in line for a place in the batch. */
  get waiting(): number {
    return this.#sum(({ engine }) => engine.waiting);
  }

  /** All others, those included that have not yet entered. */
  get running(): number {
    return this.#requests.size - this.waiting;
  }

  /** Part of the KV memory that running requests hold, 0..1. */
  get kvUsage(): number {
    if (this.#replicas.length === 0) return 0;
    // A request larger than the memory is served all the same; and what nobody holds is a sum of many roundings.
    return this.#sum(({ engine }) => Math.min(1, Math.max(0, engine.kvUsage))) / this.#replicas.length;
  }

  get preemptions(): number {
    return this.#sum(({ engine }) => engine.preemptions);
  }

  /** All that there are, ready or not. */
  get replicas(): number {
    return this.#replicas.length;
  }

  /** Requests that its batches hold at most. */
  get slots(): number {
    return this.parameters.maxRunning * this.#replicas.length;
  }

  /** Begins to serve a request; needs a ready replica. @returns what `cancel` knows it by */
  take(request: ModelRequest, answer: Answering): number {
    const id = this.#nextId++;
    const replica = this.#replicas[request.key % this.#readyReplicas]!;
    const stretch = this.#drawStretch();
    const running = { ...request, answer, replica, stretch, sent: 0 };
    this.#requests.set(id, running);
    const last = replica.entering.at(-1)?.atMs ?? 0;
    // In the order in which they came, also when it has become faster since.
    const atMs = Math.max(last, this.#nowMs() + this.#overheadMs * this.#slowdown);
    replica.entering.push({ atMs, id });
    this.#aimAt(atMs);
    return id;
  }

  /** The client has gone: what it held is free at once. Nothing where the answer has ended. */
  cancel(id: number): void {
    const running = this.#requests.get(id);
    if (running === undefined) return;
    const { replica } = running;
    this.#run(replica);
    this.#requests.delete(id);
    replica.entering = replica.entering.filter((entering) => entering.id !== id);
    if (replica.engine.cancel(this.#nowMs(), id)) this.#aim();
  }

  began(id: number, cachedTokens: number): void {
    this.#requests.get(id)!.answer.began?.(cachedTokens);
  }

  firstToken(id: number): void {
    const { replica, answer } = this.#requests.get(id)!;
    answer.first();
    if (answer.tokens !== undefined) replica.streams.put(replica.engine.tokenClock, 0, id, 0);
  }

  finished(id: number): void {
    const { answer } = this.#requests.get(id)!;
    this.#requests.delete(id);
    answer.ended();
  }

  #nowMs(): number {
    return this.#clock.nowMs() - this.#startMs;
  }

  #runAll(): void {
    for (const replica of this.#replicas) this.#run(replica);
  }

  /** What was due by now happens, each at its own time. */
  #run(replica: Replica): void {
    const { engine } = replica;
    const nowMs = this.#nowMs();
    for (;;) {
      const entersMs = replica.entering[0]?.atMs ?? Number.POSITIVE_INFINITY;
      const dueMs = Math.min(entersMs, engine.nextMs());
      if (dueMs > nowMs) break;
      // A little past it: a step is too short for a clock that has gone on for weeks to show.
      if (entersMs > dueMs) engine.run(dueMs + PAST_MS);
      else this.#enter(replica);
    }
    engine.run(nowMs);
    this.#tellTokens(replica);
  }

  #enter({ engine, entering }: Replica): void {
    const { atMs, id } = entering.shift()!;
    const { promptTokens, outputTokens, blocks, stretch } = this.#requests.get(id)!;
    const { ids, promptBlocks } = blocks;
    const size = { promptTokens, outputTokens: outputTokens * stretch, ids, from: 0 };
    engine.take(atMs, id, { ...size, promptBlocks, afterBlocks: ids.length });
  }

  /** Tells streams of the tokens that they have had since. */
  #tellTokens({ engine, streams }: Replica): void {
    const clock = engine.tokenClock;
    while (streams.nextMs <= clock + TOKEN_SLACK) {
      const id = streams.subject;
      streams.drop();
      const running = this.#requests.get(id);
      if (running === undefined) continue;
      const { outputTokens, stretch, answer } = running;
      const made = outputTokens - engine.left(id) / stretch;
      const tokens = Math.min(outputTokens, 1 + Math.floor(made + 2 * TOKEN_SLACK));
      // One that was sent back in line stands still; it is asked again a step later.
      if (tokens > running.sent) answer.tokens!(tokens);
      running.sent = Math.max(running.sent, tokens);
      if (tokens < outputTokens) streams.put(clock + (tokens - made) * stretch, 0, id, 0);
    }
  }

  #aim(): void {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { engine, entering, streams } of this.#replicas) {
      const tokenMs = streams.size === 0 ? nextMs : engine.atToken(streams.nextMs);
      nextMs = Math.min(nextMs, entering[0]?.atMs ?? nextMs, engine.nextMs(), tokenMs);
    }
    this.#aimAt(nextMs);
  }

  #aimAt(atMs: number): void {
    if (atMs >= this.#timerMs) return;
    this.#cancelTimer();
    this.#timerMs = atMs;
    // Timers cut fractions of a millisecond off; early would wake for nothing.
    const delayMs = Math.max(0, Math.ceil(atMs - this.#nowMs()));
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#timerMs = Number.POSITIVE_INFINITY;
      this.#runAll();
      this.#aim();
    });
  }

  #sum(of: (replica: Replica) => number): number {
    return this.#replicas.reduce((total, replica) => total + of(replica), 0);
  }

  /** Log-normal with mean 1, so that jitter does not move the mean. */
  #drawStretch(): number {
    if (this.#jitter === 0 || this.#random === null) return 1;
    return Math.exp(this.#jitter * standardNormal(this.#random) - (this.#jitter * this.#jitter) / 2);
  }
}

export interface EngineModelOptions {
  readonly profile: Profile;
  readonly clock: Clock;
  /** Work units/s of one replica. Default: the profile's. */
  readonly capacityWps?: number | undefined;
  /** Ready replicas. Default 1. */
  readonly replicas?: number | undefined;
  /** KV memory of one replica, tokens. Default: twice what the streams of full load hold. */
  readonly kvTokens?: number | undefined;
  /** With `random`: relative spread of the answers' decoding times. Default 0, none. */
  readonly jitter?: number | undefined;
  readonly random?: Random | undefined;
}

export interface ModelRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blocks: PromptBlocks;
  /** A whole number; equal ones meet the same replica, as affinity behind one address needs. */
  readonly key: number;
}

/** Who hears of one request's answer. */
export interface Answering {
  /** Its prompt begins to be read; so many of its tokens were in the cache. Again, should it be sent back in line. */
  began?(cachedTokens: number): void;
  first(): void;
  /** So many output tokens are there by now; more each time. Without it only the end is told. */
  tokens?(count: number): void;
  ended(): void;
}

interface Replica {
  readonly engine: BatchingEngine;
  entering: { readonly atMs: number; readonly id: number }[];
  /** Requests by the reading of the token clock at which their next token is due. */
  readonly streams: EventHeap;
}

interface Running extends ModelRequest {
  readonly answer: Answering;
  readonly replica: Replica;
  /** The model decodes so many tokens for each that it answers with. */
  readonly stretch: number;
  sent: number;
}

export const BLOCK_TOKENS = 16;
const PAST_MS = 1e-6;
/** Readings of the token clock are sums of many roundings. */
const TOKEN_SLACK = 1e-6;
const KV_ROOM = 2;

/** Room for the streams that full load holds (rate × residence), and as much again for what is kept of earlier ones. */
function usualKvTokens({ reference, ttftMs, tbotMs }: Profile, capacityWps: number): number {
  const { promptTokens, outputTokens } = reference;
  const residenceMs = ttftMs.at(-1)![1] + outputTokens * tbotMs.at(-1)![1];
  const tokens = KV_ROOM * capacityWps * (residenceMs / 1000) * (promptTokens + outputTokens);
  return Math.max(tokens, KV_ROOM * (promptTokens + outputTokens));
}

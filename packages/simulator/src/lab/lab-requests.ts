import type { Outcome, Random } from "@guidevane/core";
import { type AttemptEnd, afterAttempt, type Next } from "@guidevane/guard";
import type { EngineRequest, EngineSink } from "./batching-engine.ts";
import { ClientRetries, ONCE } from "./client-retries.ts";
import type { EventHeap } from "./event-heap.ts";
import { EVENT } from "./events.ts";
import type { LabControl } from "./lab-control.ts";
import type { LabEngines } from "./lab-engines.ts";
import type { LabHealth } from "./lab-health.ts";
import type { ClientOptions, LabOptions } from "./lab-options.ts";
import type { LabClock } from "./lab-timers.ts";
import { mix32 } from "./mix.ts";
import { cellOf, type Policy, type PolicyWorld, SHED } from "./policy.ts";
import { ENDED, type Tally } from "./tally.ts";
import type { Workload } from "./workload.ts";

/** Why an attempt came back without an answer; marks of `EVENT.back`. */
const BACK = { refused: 0, saturated: 1, closed: 2, broken: 3 } as const;

/** What a request's life touches. */
export interface RequestParts {
  readonly options: LabOptions;
  readonly heap: EventHeap;
  readonly clock: LabClock;
  readonly random: Random;
  readonly health: LabHealth;
  readonly control: LabControl;
  readonly tally: Tally;
}

/**
 * The life of each request: sent by its client, routed by a gateway, under way, at an engine, answered; or refused, lost or
 * given up, and then tried elsewhere, again, or not at all. Engines know an attempt by its number, request + tries · size,
 * so that what is left of an old attempt is told from the present one.
 */
export class LabRequests implements EngineSink {
  /** By gateway · engines + engine. */
  readonly inFlight: Uint32Array;
  readonly #parts: RequestParts;
  readonly #workload: Workload;
  readonly #tally: Tally;
  readonly #heap: EventHeap;
  readonly #clock: LabClock;
  readonly #client: ClientOptions;
  readonly #retries: ClientRetries;
  readonly #engineCount: number;
  // Of each request's present attempt.
  readonly #tries: Uint16Array;
  readonly #gatewayOf: Uint16Array;
  readonly #engineOf: Int16Array;
  readonly #firstMs: Float64Array;
  readonly #sentMs: Float64Array;
  readonly #follower: Int32Array;
  readonly #tried = new Map<number, { readonly engines: number[]; unreached: number }>();
  /** Of the request that is handed to a replica: the same object for all, since replicas copy it. */
  readonly #size: { -readonly [key in keyof EngineRequest]: EngineRequest[key] };
  #world!: PolicyWorld;
  #policy!: Policy;
  #engines!: LabEngines;
  #underWay = 0;

  constructor(parts: RequestParts, gateways: number, engines: number) {
    const { workload, client = ONCE } = parts.options;
    const { size } = workload;
    this.#parts = parts;
    this.#workload = workload;
    this.#tally = parts.tally;
    this.#heap = parts.heap;
    this.#clock = parts.clock;
    this.#client = client;
    this.#retries = new ClientRetries(client, parts.random);
    this.#engineCount = engines;
    this.inFlight = new Uint32Array(gateways * engines);
    this.#tries = new Uint16Array(size);
    this.#gatewayOf = new Uint16Array(size);
    this.#engineOf = new Int16Array(size).fill(-1);
    this.#firstMs = new Float64Array(size).fill(Number.NaN);
    this.#sentMs = new Float64Array(size);
    this.#follower = new Int32Array(size).fill(-1);
    this.#size = { ids: workload.blockIds, promptTokens: 0, outputTokens: 0, from: 0, promptBlocks: 0, afterBlocks: 0 };
    for (let row = 0; row < size; row++) {
      const previous = workload.previous[row]!;
      if (previous >= 0) this.#follower[previous] = row;
    }
  }

  /** Requests that are on their way, at an engine, or about to be sent again. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Once, before the first request. */
  begin(world: PolicyWorld, policy: Policy, engines: LabEngines): void {
    this.#world = world;
    this.#policy = policy;
    this.#engines = engines;
  }

  /** One that was put off is sent now. */
  arriveAgain(request: number): void {
    this.#underWay -= 1;
    this.arrive(request);
  }

  /** A client sends its request, for the first time or again. */
  arrive(request: number): void {
    const tally = this.#tally;
    const nowMs = this.#clock.now;
    if (Number.isNaN(tally.arrivedMs[request]!)) tally.arrivedMs[request] = nowMs;
    tally.clientAttempts[request]! += 1;
    if (tally.clientAttempts[request] === 1) this.#retries.firstAttempt();
    this.#underWay += 1;
    const { gatewayCluster, places, fleet } = this.#world;
    const perCluster = gatewayCluster.length / fleet.clusters.length;
    const cluster = places.cluster[this.#workload.cluster[request]!]!;
    const gateway = cluster * perCluster + (mix32(request * 8 + tally.clientAttempts[request]!) % perCluster);
    this.#gatewayOf[request] = gateway;
    this.#parts.control.arrived(gateway, places.class[this.#workload.requestClass[request]!]!);
    if (this.#client.timeoutMs > 0)
      this.#heap.put(nowMs + this.#client.timeoutMs, EVENT.giveUp, request, tally.clientAttempts[request]!);
    if (this.#tried.size > 0) this.#tried.delete(request);
    this.#send(request, NO_ENGINES, false);
  }

  #send(request: number, tried: readonly number[], isFree: boolean): void {
    const gateway = this.#gatewayOf[request]!;
    const engine = this.#policy.route(gateway, request, tried, isFree);
    if (engine < 0) {
      this.#endAttempt(request, engine === SHED ? ENDED.shed : ENDED.failed);
      return;
    }
    const tries = this.#tries[request]! + 1;
    this.#tries[request] = tries;
    this.#tally.attempts[request]! += 1;
    this.#engineOf[request] = engine;
    this.#firstMs[request] = Number.NaN;
    this.#sentMs[request] = this.#clock.now;
    this.inFlight[gateway * this.#engineCount + engine]! += 1;
    this.#policy.sent?.(gateway, request, engine);
    this.#heap.put(this.#clock.now + this.#rttMs(request, engine) / 2, EVENT.atEngine, this.#id(request), engine);
  }

  atEngine(id: number, engine: number): void {
    const request = id % this.#workload.size;
    const isPresent = this.#isPresent(id);
    if (!isPresent && this.#client.cancels) return;
    const nowMs = this.#clock.now;
    const backMs = nowMs + this.#rttMs(request, engine) / 2;
    if (this.#engines.alive[engine] === 0) {
      if (isPresent) this.#heap.put(backMs, EVENT.back, id, BACK.refused);
      return;
    }
    const workload = this.#workload;
    const index = this.#engines.replicaFor(engine, this.#world.keyHash[workload.conversation[request]!]!);
    const replica = this.#engines.replicas[index]!;
    if (replica.waiting >= (this.#parts.options.maxWaiting ?? Number.POSITIVE_INFINITY)) {
      if (isPresent) this.#heap.put(backMs, EVENT.back, id, BACK.saturated);
      return;
    }
    const size = this.#size;
    size.promptTokens = workload.promptTokens[request]!;
    size.outputTokens = workload.outputTokens[request]!;
    size.from = workload.blockFrom[request]!;
    size.promptBlocks = workload.promptBlocks[request]!;
    size.afterBlocks = workload.afterBlocks[request]!;
    replica.take(nowMs, id, size);
    this.#engines.schedule(index);
  }

  began(id: number, cachedTokens: number): void {
    if (this.#isPresent(id)) this.#tally.cachedTokens[id % this.#workload.size] = cachedTokens;
  }

  firstToken(id: number, atMs: number): void {
    if (!this.#isPresent(id)) return;
    const request = id % this.#workload.size;
    this.#firstMs[request] = atMs;
    if (this.#policy.firstToken === undefined) return;
    // Told before it has come all the way: nobody decides anything by it so soon.
    const halfMs = this.#rttMs(request, this.#engineOf[request]!) / 2;
    this.#policy.firstToken(this.#gatewayOf[request]!, request, atMs + halfMs - this.#sentMs[request]!);
  }

  finished(id: number, atMs: number): void {
    if (!this.#isPresent(id)) return;
    const request = id % this.#workload.size;
    const engine = this.#engineOf[request]!;
    const halfMs = this.#rttMs(request, engine) / 2;
    const cameMs = this.#sentMs[request]! + halfMs;
    this.#engines.answered(engine, this.#firstMs[request]! - cameMs, atMs - cameMs);
    this.#heap.put(Math.max(atMs, this.#clock.now) + halfMs, EVENT.answered, id, 0);
  }

  answered(id: number): void {
    if (!this.#isPresent(id)) return;
    const request = id % this.#workload.size;
    const engine = this.#engineOf[request]!;
    const tally = this.#tally;
    const arrivedMs = tally.arrivedMs[request]!;
    const rttMs = this.#rttMs(request, engine);
    tally.ended[request] = ENDED.answered;
    tally.engine[request] = engine;
    tally.networkMs[request] = rttMs;
    tally.ttftMs[request] = this.#firstMs[request]! + rttMs / 2 - arrivedMs;
    tally.e2eMs[request] = this.#clock.now - arrivedMs;
    const outputTokens = this.#workload.outputTokens[request]!;
    const decodeMs = this.#clock.now - rttMs / 2 - this.#firstMs[request]!;
    this.#leaveEngine(request, "success", outputTokens > 1 ? decodeMs / (outputTokens - 1) : null);
    this.#policy.over?.(this.#gatewayOf[request]!, request);
    this.#underWay -= 1;
    const follower = this.#follower[request]!;
    if (follower >= 0) this.#arriveLater(follower, this.#workload.thinkMs[follower]!);
  }

  /** An attempt came back without an answer: another engine, or the client hears of it. */
  back(id: number, why: number): void {
    if (!this.#isPresent(id)) return;
    const request = id % this.#workload.size;
    const engine = this.#engineOf[request]!;
    const tried = this.#tried.get(request) ?? { engines: [], unreached: 0 };
    this.#leaveEngine(request, why === BACK.saturated ? "saturated" : "fault");
    if (why === BACK.refused) this.#parts.health.refused(this.#gatewayOf[request]!, engine);
    const attemptsMax = this.#parts.options.fleet.gateway.retry.attempts;
    const { engines, unreached } = tried;
    const seen = { attempts: engines.length + 1, unreached, attemptsMax, freshTried: false, leavesTrace: false };
    const next: Next = why === BACK.broken ? { retry: false } : afterAttempt(END_OF[why]!, seen, this.#parts.random());
    if (next.retry !== "other") {
      this.#endAttempt(request, ENDED.failed);
      return;
    }
    engines.push(engine);
    if (next.free) tried.unreached += 1;
    this.#tried.set(request, tried);
    this.#send(request, engines, next.free);
  }

  /** No first token for too long: the client gives up this attempt. */
  giveUp(request: number, clientAttempt: number): void {
    if (this.#tally.ended[request] !== ENDED.not || this.#tally.clientAttempts[request] !== clientAttempt) return;
    if (this.#engineOf[request]! < 0 || this.#firstMs[request]! <= this.#clock.now) return;
    const engine = this.#engineOf[request]!;
    if (this.#client.cancels) {
      const key = this.#world.keyHash[this.#workload.conversation[request]!]!;
      const index = this.#engines.replicaFor(engine, key);
      const replica = this.#engines.replicas[index]!;
      if (replica.cancel(this.#clock.now, this.#id(request))) this.#engines.schedule(index);
    }
    this.#leaveEngine(request, "cancelled");
    this.#endAttempt(request, ENDED.gaveUp);
  }

  /** The client has no answer: it tries again, or that was it. What follows in its conversation is never sent. */
  #endAttempt(request: number, ended: number): void {
    this.#underWay -= 1;
    this.#policy.over?.(this.#gatewayOf[request]!, request);
    // What is still under way of this attempt is nobody's any more.
    this.#tries[request]! += 1;
    const againMs = this.#retries.take(this.#tally.clientAttempts[request]!);
    if (againMs === null) this.#tally.ended[request] = ended;
    else this.#arriveLater(request, againMs);
  }

  #arriveLater(request: number, inMs: number): void {
    const atMs = this.#clock.now + inMs;
    if (atMs >= (this.#parts.options.untilMs ?? Number.POSITIVE_INFINITY)) return;
    this.#underWay += 1;
    this.#heap.put(atMs, EVENT.arrive, request, 0);
  }

  #leaveEngine(request: number, outcome: Outcome, tbotMs: number | null = null): void {
    const gateway = this.#gatewayOf[request]!;
    const engine = this.#engineOf[request]!;
    this.inFlight[gateway * this.#engineCount + engine]! -= 1;
    this.#engineOf[request] = -1;
    this.#policy.ended?.(gateway, request, engine, outcome, tbotMs);
  }

  /** An engine died with this attempt: what the client has begun to read breaks, the rest may be tried elsewhere. */
  lost(id: number): void {
    if (!this.#isPresent(id)) return;
    const request = id % this.#workload.size;
    const hasBegun = this.#firstMs[request]! <= this.#clock.now;
    const backMs = this.#clock.now + this.#rttMs(request, this.#engineOf[request]!) / 2;
    this.#heap.put(backMs, EVENT.back, id, hasBegun ? BACK.broken : BACK.closed);
  }

  #rttMs(request: number, engine: number): number {
    const cluster = cellOf(this.#world, request) % this.#world.fleet.clusters.length;
    return this.#world.fleet.rttMs[cluster * this.#engineCount + engine]!;
  }

  /** Of the present attempt: what engines know it by. */
  #id(request: number): number {
    return request + this.#tries[request]! * this.#workload.size;
  }

  #isPresent(id: number): boolean {
    const request = id % this.#workload.size;
    return this.#id(request) === id && this.#tally.ended[request] === ENDED.not;
  }
}

const NO_ENGINES: readonly number[] = [];

const END_OF: readonly AttemptEnd[] = [
  { kind: "connect" },
  { kind: "answer", status: 503, servesModel: true, retryAfterMs: null },
  { kind: "closed" },
];

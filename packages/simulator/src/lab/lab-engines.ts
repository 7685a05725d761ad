import type { Profile } from "@guidevane/core";
import { BatchingEngine, type EngineSink } from "./batching-engine.ts";
import { type EngineParameters, engineParameters } from "./engine-parameters.ts";
import type { EventHeap } from "./event-heap.ts";
import { EVENT } from "./events.ts";
import type { LabFleet } from "./lab-fleet.ts";
import type { LabClock } from "./lab-timers.ts";
import type { SignalBoard } from "./signal-board.ts";
import type { Workload } from "./workload.ts";

/** Every engine's replicas: their events, their failures, and what they say of themselves. */
export class LabEngines {
  /** Of all engines; those of engine e are `first[e] .. first[e + 1]`. */
  readonly replicas: readonly BatchingEngine[];
  readonly first: readonly number[];
  /** Engine of each replica. */
  readonly engineOf: readonly number[];
  readonly alive: Uint8Array;
  readonly #fleet: LabFleet;
  readonly #clock: LabClock;
  readonly #heap: EventHeap;
  /** Per replica: the mark of its event that holds, and when that is. */
  readonly #changes: Int32Array;
  readonly #dueMs: Float64Array;
  readonly #workBefore: Float64Array;
  readonly #sampleBefore: Float64Array;
  readonly #ttftSum: Float64Array;
  readonly #latencySum: Float64Array;
  readonly #ended: Float64Array;

  constructor(fleet: LabFleet, workload: Workload, kvTokens: number, clock: LabClock, heap: EventHeap) {
    const memory = { blockTokens: workload.blockTokens, kvTokens };
    const known = new Map<Profile, Map<number, EngineParameters>>();
    const replicas: BatchingEngine[] = [];
    const engineOf: number[] = [];
    this.first = [...fleet.engines.entries()].map(([e, spec]) => {
      const byCapacity = known.get(fleet.profiles[e]!) ?? new Map<number, EngineParameters>();
      known.set(fleet.profiles[e]!, byCapacity);
      const parameters =
        byCapacity.get(spec.capacityWps) ?? engineParameters(fleet.profiles[e]!, spec.capacityWps, memory);
      byCapacity.set(spec.capacityWps, parameters);
      const first = replicas.length;
      for (let i = 0; i < spec.replicas; i++) {
        replicas.push(new BatchingEngine(parameters));
        engineOf.push(e);
      }
      return first;
    });
    this.first = [...this.first, replicas.length];
    this.replicas = replicas;
    this.engineOf = engineOf;
    this.#fleet = fleet;
    this.#clock = clock;
    this.#heap = heap;
    this.#changes = new Int32Array(replicas.length);
    this.#dueMs = new Float64Array(replicas.length).fill(Number.POSITIVE_INFINITY);
    const count = fleet.engines.length;
    this.alive = new Uint8Array(count).fill(1);
    this.#workBefore = new Float64Array(count);
    this.#sampleBefore = new Float64Array(count);
    this.#ttftSum = new Float64Array(count);
    this.#latencySum = new Float64Array(count);
    this.#ended = new Float64Array(count);
  }

  /** Once, before the first request. */
  begin(sink: EngineSink): void {
    for (const replica of this.replicas) replica.tell(sink);
  }

  /** The event of a replica; an old one, whose mark is no longer its, is nothing. */
  run(index: number, mark: number): void {
    if (mark !== this.#changes[index]) return;
    this.#dueMs[index] = Number.POSITIVE_INFINITY;
    this.replicas[index]!.run(this.#clock.now);
    this.schedule(index);
  }

  /** After everything that changes a replica: when it is to be run. */
  schedule(index: number): void {
    const atMs = this.replicas[index]!.nextMs();
    if (atMs === this.#dueMs[index]) return;
    this.#dueMs[index] = atMs;
    this.#changes[index]! += 1;
    if (atMs < Number.POSITIVE_INFINITY)
      this.#heap.put(Math.max(atMs, this.#clock.now), EVENT.replica, index, this.#changes[index]!);
  }

  /** The engine is gone, its caches too. Gives the attempts that were there. */
  die(engine: number): number[] {
    this.alive[engine] = 0;
    const lost: number[] = [];
    for (let index = this.first[engine]!; index < this.first[engine + 1]!; index++) {
      lost.push(...this.replicas[index]!.die(this.#clock.now));
      this.schedule(index);
    }
    return lost;
  }

  setSlowdown(engine: number, factor: number): void {
    for (let index = this.first[engine]!; index < this.first[engine + 1]!; index++) {
      this.replicas[index]!.setSlowdown(this.#clock.now, factor);
      this.schedule(index);
    }
  }

  forget(engine: number): void {
    for (const replica of this.of(engine)) replica.forget();
  }

  /** Replica of an engine for a key: behind one address a key stays with one replica, as affinity needs. */
  replicaFor(engine: number, keyHash: number): number {
    const first = this.first[engine]!;
    const count = this.first[engine + 1]! - first;
    // Another draw than the ring's, which takes the top bits.
    return count === 1 ? first : first + ((Math.imul(keyHash, 0x9e37_79b1) >>> 16) % count);
  }

  of(engine: number): readonly BatchingEngine[] {
    return this.replicas.slice(this.first[engine]!, this.first[engine + 1]!);
  }

  /** An answer that an engine gave, as it measures it itself: without the network. */
  answered(engine: number, ttftMs: number, latencyMs: number): void {
    this.#ttftSum[engine]! += ttftMs;
    this.#latencySum[engine]! += latencyMs;
    this.#ended[engine]! += 1;
  }

  /** Writes what a poll would find now. @param sinceMs since the last one */
  poll(board: SignalBoard, sinceMs: number): void {
    for (let e = 0; e < this.#fleet.engines.length; e++) {
      board.running[e] = this.#sum(e, runningOf);
      board.waiting[e] = this.#sum(e, waitingOf);
      board.waitingTokens[e] = this.#sum(e, waitingTokensOf);
      board.kvUsage[e] = this.#sum(e, kvUsageOf) / (this.first[e + 1]! - this.first[e]!);
      board.utilisation[e] = this.#utilisation(e, this.#workBefore, sinceMs);
      if (this.#ended[e]! > 0) {
        board.ttftMs[e] = this.#ttftSum[e]! / this.#ended[e]!;
        board.latencyMs[e] = this.#latencySum[e]! / this.#ended[e]!;
      }
      this.#ttftSum[e] = 0;
      this.#latencySum[e] = 0;
      this.#ended[e] = 0;
    }
  }

  /** Finished work ÷ capacity since the last sample, by engine. */
  utilisationSince(sinceMs: number): Float32Array {
    return Float32Array.from(this.#fleet.engines, (_, e) => this.#utilisation(e, this.#sampleBefore, sinceMs));
  }

  requestsThere(): Float32Array {
    return Float32Array.from(this.#fleet.engines, (_, e) => this.#sum(e, thereOf));
  }

  /** Over an engine's replicas. */
  #sum(engine: number, of: (replica: BatchingEngine) => number): number {
    let total = 0;
    for (let index = this.first[engine]!; index < this.first[engine + 1]!; index++) total += of(this.replicas[index]!);
    return total;
  }

  #utilisation(engine: number, before: Float64Array, sinceMs: number): number {
    const work = this.#sum(engine, doneWorkOf);
    const done = work - before[engine]!;
    before[engine] = work;
    return sinceMs > 0 ? (1000 * done) / sinceMs / this.#fleet.capacityWps[engine]! : 0;
  }
}

const runningOf = (replica: BatchingEngine): number => replica.running;
const waitingOf = (replica: BatchingEngine): number => replica.waiting;
const waitingTokensOf = (replica: BatchingEngine): number => replica.waitingTokens;
const kvUsageOf = (replica: BatchingEngine): number => replica.kvUsage;
const doneWorkOf = (replica: BatchingEngine): number => replica.doneWork;
const thereOf = (replica: BatchingEngine): number => replica.running + replica.waiting;

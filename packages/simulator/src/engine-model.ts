import { type Clock, type Profile, type Random, valueAt, workOf } from "@guidevane/core";
import { WorkRate } from "./work-rate.ts";

/**
 * One engine whose latency grows with its load, as its profile says.
 *
 *     ρ       = rate of admitted work ÷ U              U = capacityWps × ready replicas
 *     TTFT    = queue + TTFT(ρ) + prefillMsPerTok·(promptTokens − reference.promptTokens), at least the queue
 *     total   = TTFT + outputTokens·TBOT(ρ)            the twin that the optimizer plans with
 *     queue   = B ÷ U,   dB/dt = admitted − U           only while overloaded
 *
 * A profile is a mean over Poisson arrivals, so it already holds the queueing of chance at ρ < 1; a queue of its own is
 * kept only from when the rate shows more than the engine can do until that queue is empty again. ρ is read at admission
 * and holds for the whole answer; the curve is not read beyond ρ = 1, where the queue takes over.
 *
 * Pure: time and chance come from outside, so that the same model serves a virtual clock and a real one.
 */
export class EngineModel {
  readonly #profile: Profile;
  readonly #capacityWps: number;
  readonly #clock: Clock;
  readonly #random: Random | null;
  readonly #jitter: number;
  readonly #rate: WorkRate;
  #readyReplicas: number;
  #slowdown = 1;
  #backlog = 0;
  #backlogAtMs: number;

  constructor(options: EngineModelOptions) {
    this.#profile = options.profile;
    this.#capacityWps = options.capacityWps ?? options.profile.capacityWps;
    this.#clock = options.clock;
    this.#random = options.random ?? null;
    this.#jitter = options.random === undefined ? 0 : (options.jitter ?? 0);
    this.#readyReplicas = options.replicas ?? 1;
    this.#rate = new WorkRate(options.windowMs ?? 2000);
    this.#backlogAtMs = options.clock.nowMs();
  }

  /** Work units/s that it can do now; 0 without ready replicas. */
  get capacityWps(): number {
    return (this.#capacityWps * this.#readyReplicas) / this.#slowdown;
  }

  get readyReplicas(): number {
    return this.#readyReplicas;
  }

  set readyReplicas(replicas: number) {
    this.#drain();
    this.#readyReplicas = replicas;
  }

  /** Every step takes this many times as long, so that it also holds that much less. 1 = as its profile says. */
  get slowdown(): number {
    return this.#slowdown;
  }

  set slowdown(factor: number) {
    this.#drain();
    this.#slowdown = factor;
  }

  /** Units of work that wait beyond what the engine can do. */
  get backlog(): number {
    this.#drain();
    return this.#backlog;
  }

  /** Rate of admitted work ÷ capacity; above 1 when more is offered than it can do. Infinite without capacity. */
  utilisation(): number {
    return this.#rate.at(this.#clock.nowMs()).rateWps / this.capacityWps;
  }

  /** Takes a request in now and says how long it will take. */
  admit(request: RequestSize): Admission {
    this.#drain();
    const nowMs = this.#clock.nowMs();
    const profile = this.#profile;
    const capacityWps = this.capacityWps;
    const work = workOf(profile, request.promptTokens, request.outputTokens);
    // Read before this request counts: an arrival of a Poisson stream sees the load without itself.
    const { rateWps, deviationWps } = this.#rate.at(nowMs);
    const utilisation = rateWps / capacityWps;
    const overloaded = rateWps > capacityWps + deviationWps;
    const queueMs = (1000 * this.#backlog) / capacityWps;
    if (overloaded || this.#backlog > 0) this.#backlog += work;
    this.#rate.add(nowMs, work);

    const at = Math.min(utilisation, 1);
    const factor = this.#slowdown * this.#drawJitter();
    const prefillMs =
      valueAt(profile.ttftMs, at) + profile.prefillMsPerTok * (request.promptTokens - profile.reference.promptTokens);
    const ttftMs = queueMs + Math.max(0, prefillMs) * factor;
    const tbotMs = valueAt(profile.tbotMs, at) * factor;
    return { work, utilisation, queueMs, ttftMs, tbotMs, totalMs: ttftMs + request.outputTokens * tbotMs };
  }

  /** A request that was cancelled with `undone` (0..1) of its work left: that part is free at once. */
  release(admission: Admission, undone: number): void {
    this.#drain();
    const work = admission.work * undone;
    this.#rate.add(this.#clock.nowMs(), -work);
    this.#backlog = Math.max(0, this.#backlog - work);
  }

  #drain(): void {
    const nowMs = this.#clock.nowMs();
    this.#backlog = Math.max(0, this.#backlog - (this.capacityWps * (nowMs - this.#backlogAtMs)) / 1000);
    this.#backlogAtMs = nowMs;
  }

  /** Log-normal with mean 1, so that jitter does not move the mean. */
  #drawJitter(): number {
    if (this.#jitter === 0 || this.#random === null) return 1;
    const radius = Math.sqrt(-2 * Math.log(1 - this.#random()));
    const normal = radius * Math.cos(2 * Math.PI * this.#random());
    return Math.exp(this.#jitter * normal - (this.#jitter * this.#jitter) / 2);
  }
}

export interface EngineModelOptions {
  readonly profile: Profile;
  readonly clock: Clock;
  /** Work units/s of one replica. Default: the profile's. */
  readonly capacityWps?: number | undefined;
  /** Ready replicas. Default 1. */
  readonly replicas?: number | undefined;
  /** Shortest window of the load estimate. Shorter reacts faster and is noisier. Default 2000. */
  readonly windowMs?: number | undefined;
  /** With `random`: relative spread of each request's times. Default 0, none. */
  readonly jitter?: number | undefined;
  readonly random?: Random | undefined;
}

export interface RequestSize {
  /** Not found in a cache. */
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface Admission {
  /** Units of work of the request. */
  readonly work: number;
  /** The load it met. */
  readonly utilisation: number;
  /** Wait before it is begun; 0 unless the engine is overloaded. */
  readonly queueMs: number;
  /** From now to its first token, the queue included. */
  readonly ttftMs: number;
  readonly tbotMs: number;
  /** From now to its end. */
  readonly totalMs: number;
}

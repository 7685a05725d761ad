import type { Address } from "./address.ts";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { Decision } from "./decision.ts";
import type { ClassCounts } from "./demand.ts";
import { figuresOf, type MetricFigures } from "./metrics.ts";
import { type RequestSettings, RequestThread, type RequestThreadOptions } from "./request-thread.ts";

/** The request path as the rest of the process sees it, on however many threads it runs. */
export interface RequestThreads {
  /** A client that connects now finds somebody. */
  readonly listening: boolean;
  /** @returns the base URL that leads there. Rejects with what listening fails on */
  listen(address: Address): Promise<string>;
  /** Requests are routed by it as soon as their thread has loaded it. */
  use(compiled: CompiledSnapshot): Promise<void>;
  /** From the next request on. */
  configure(settings: RequestSettings): void;
  /** So many gateways of the cluster live, this one included. */
  setGateways(count: number): void;
  /** The control plane was heard, just now. */
  controlHeard(): void;
  /** An engine's port refuses: what waits for it need not wait on. */
  engineDied(engine: string): void;
  /** What arrived since the last call. */
  takeArrivals(): readonly ReadonlyMap<string, ClassCounts>[];
  /** What became of the last request with that id, and why; null where no thread knows it. */
  findDecision(id: string): Promise<Decision | null>;
  /** Of each thread. */
  metrics(): Promise<MetricFigures[]>;
  /** Takes no new request, lets running answers finish for up to `graceMs`, then closes everything. */
  stop(graceMs: number): Promise<void>;
}

/** Serves on the thread that it is made on. */
export class OwnThread implements RequestThreads {
  readonly #thread: RequestThread;
  #listening = false;

  constructor(options: RequestThreadOptions) {
    this.#thread = new RequestThread(options);
  }

  get listening(): boolean {
    return this.#listening;
  }

  async listen(address: Address): Promise<string> {
    const url = await this.#thread.listen(address);
    this.#listening = true;
    return url;
  }

  use(compiled: CompiledSnapshot): Promise<void> {
    return this.#thread.use(compiled);
  }

  configure(settings: RequestSettings): void {
    this.#thread.configure(settings);
  }

  setGateways(count: number): void {
    this.#thread.setGateways(count);
  }

  controlHeard(): void {
    this.#thread.controlHeard();
  }

  engineDied(engine: string): void {
    this.#thread.engineDied(engine);
  }

  takeArrivals(): readonly ReadonlyMap<string, ClassCounts>[] {
    return [this.#thread.takeArrivals()];
  }

  async findDecision(id: string): Promise<Decision | null> {
    return this.#thread.findDecision(id);
  }

  async metrics(): Promise<MetricFigures[]> {
    return [await figuresOf(this.#thread.metrics.registry)];
  }

  stop(graceMs: number): Promise<void> {
    return this.#thread.stop(graceMs);
  }
}

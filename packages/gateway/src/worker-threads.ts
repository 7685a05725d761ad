import type { Clock } from "@guidevane/core";
import { type Address, claim } from "./address.ts";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { Decision } from "./decision.ts";
import type { ClassCounts } from "./demand.ts";
import type { Logger } from "./logger.ts";
import { addEnded, type MetricFigures } from "./metrics.ts";
import type { RequestSettings, ThreadNews } from "./request-thread.ts";
import type { RequestThreads } from "./request-threads.ts";
import { threadZeroMs } from "./thread-clock.ts";
import { GOOD_START_MS, ThreadDeaths } from "./thread-deaths.ts";
import type { Order, WorkerStart } from "./thread-messages.ts";
import { WorkerThread } from "./worker-thread.ts";

export interface WorkerThreadsOptions extends Omit<WorkerStart, "thread" | "clockZeroMs" | "controlSilentMs"> {
  /** The module that workers run; left out = this package's. */
  readonly worker?: URL | undefined;
  /** At least 2; one thread is the process's own. */
  readonly count: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What a thread tells, with the thread's index. */
  readonly newsOf: (thread: number) => ThreadNews;
  /** A thread died: what it held is free again. Another one takes its place and loads what is in use then. */
  readonly onDeath: (thread: number) => void;
  /** A new thread in the place of one that died loads this one; it is held for it. */
  readonly onReplaced: (thread: number) => CompiledSnapshot;
}

/** Serves on worker threads that listen at one address, so that the kernel spreads connections over them. */
export class WorkerThreads implements RequestThreads {
  readonly #options: WorkerThreadsOptions;
  readonly #threads: WorkerThread[];
  #settings: RequestSettings;
  #address: Address | null = null;
  /** As last told; null = as the snapshot says. */
  #gateways: number | null = null;
  #controlHeardMs: number;
  #arrivals: ReadonlyMap<string, ClassCounts>[] = [];
  #stopping = false;
  readonly #deaths: ThreadDeaths;
  /** What threads that died had counted. */
  #ended: Promise<MetricFigures> = Promise.resolve([]);

  constructor(options: WorkerThreadsOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#controlHeardMs = options.clock.nowMs();
    this.#deaths = new ThreadDeaths(options.clock, options.count);
    this.#threads = Array.from({ length: options.count }, (_, index) => this.#start(index, options.first));
  }

  get listening(): boolean {
    return this.#threads.some(({ listens }) => listens);
  }

  async listen(address: Address): Promise<string> {
    // Where threads share an address other programs of this user could, too: one that is taken has to be found first.
    const { port } = await claim(address);
    this.#address = { ...address, port };
    const urls = await Promise.all(this.#threads.map((thread) => thread.listen(this.#address!)));
    return urls[0]!;
  }

  async use(compiled: CompiledSnapshot): Promise<void> {
    this.#order({ kind: "use", compiled });
  }

  configure(settings: RequestSettings): void {
    this.#settings = settings;
    this.#order({ kind: "configure", settings });
  }

  setGateways(count: number): void {
    this.#gateways = count;
    this.#order({ kind: "gateways", count });
  }

  controlHeard(): void {
    this.#controlHeardMs = this.#options.clock.nowMs();
    this.#order({ kind: "control-heard" });
  }

  engineDied(engine: string): void {
    this.#order({ kind: "engine-died", engine });
  }

  takeArrivals(): readonly ReadonlyMap<string, ClassCounts>[] {
    const taken = this.#arrivals;
    this.#arrivals = [];
    return taken;
  }

  async findDecision(id: string): Promise<Decision | null> {
    const found = await Promise.all(this.#threads.map((thread) => thread.findDecision(id)));
    // A client may have sent one id to several threads: the last one counts.
    return found.reduce((last, each) => (each !== null && (last === null || each.at > last.at) ? each : last), null);
  }

  async metrics(): Promise<MetricFigures[]> {
    await Promise.all(this.#threads.map((thread) => thread.askFigures()));
    // Both at one moment: one that died since its answer counts among the dead.
    const living = this.#threads.map(({ figures }) => figures);
    return [await this.#ended, ...living];
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#threads.map((thread) => thread.stop(graceMs)));
  }

  #order(order: Order): void {
    for (const thread of this.#threads) thread.order(order);
  }

  #start(index: number, first: CompiledSnapshot): WorkerThread {
    const { selector, state, retryMemory, streamMemory, responseMemory, clock, logger, newsOf } = this.#options;
    return new WorkerThread({
      worker: this.#options.worker ?? REQUEST_WORKER,
      start: {
        selector,
        state,
        retryMemory,
        streamMemory,
        responseMemory,
        thread: index,
        clockZeroMs: threadZeroMs(),
        controlSilentMs: clock.nowMs() - this.#controlHeardMs,
        settings: this.#settings,
        first,
      },
      clock,
      news: newsOf(index),
      onArrivals: (arrived) => this.#arrivals.push(arrived),
      onDeath: (why, figures) => {
        if (this.#stopping) return;
        const { waitMs, isNews } = this.#deaths.died(index, why);
        if (isNews)
          logger.error(
            { thread: index, why, replacedInMs: waitMs },
            "a request thread died; its requests are lost, another one takes its place",
          );
        if (figures !== null) this.#ended = this.#ended.then((ended) => addEnded(ended, figures));
        this.#options.onDeath(index);
        if (waitMs === 0) void this.#replace(index, isNews);
        else clock.after(waitMs, () => void this.#replace(index, isNews));
      },
    });
  }

  /** @param isTold of the death before: then it is told at once, too, that there is another thread */
  async #replace(index: number, isTold: boolean): Promise<void> {
    if (this.#stopping) return;
    this.#deaths.born(index);
    const thread = this.#start(index, this.#options.onReplaced(index));
    this.#threads[index] = thread;
    if (this.#gateways !== null) thread.order({ kind: "gateways", count: this.#gateways });
    try {
      if (this.#address !== null) await thread.listen(this.#address);
      if (isTold) this.#tellBack(index);
      else this.#options.clock.after(GOOD_START_MS, () => thread.listens && this.#tellBack(index));
    } catch (error) {
      // It would serve nobody. A thread that died meanwhile is ended again, which does nothing.
      thread.end(`it can't listen: ${String(error)}`);
    }
  }

  #tellBack(index: number): void {
    this.#options.logger.info({ thread: index }, "a request thread is back");
  }
}

const REQUEST_WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "./request-worker.ts" : "./request-worker.js",
  import.meta.url,
);

import { Worker } from "node:worker_threads";
import type { Clock } from "@guidevane/core";
import { type Address, claim } from "./address.ts";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { Decision } from "./decision.ts";
import type { ClassCounts } from "./demand.ts";
import type { Logger } from "./logger.ts";
import type { MetricFigures } from "./metrics.ts";
import type { RequestSettings, ThreadNews } from "./request-thread.ts";
import type { RequestThreads } from "./request-threads.ts";
import { threadZeroMs } from "./thread-clock.ts";
import type { NewsItem, Order, Word, WorkerStart } from "./thread-messages.ts";

export interface WorkerThreadsOptions extends Omit<WorkerStart, "thread" | "clockZeroMs"> {
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

/** A thread that died is replaced after this long; twice as long after each death that follows soon. */
const REPLACE_MS = 250;
const REPLACE_MAX_MS = 10_000;
/** A thread that lived so long had a good start. */
const GOOD_START_MS = 10_000;
/** A thread that has not answered a question by then is busy; what it said last stands. */
const ANSWER_MS = 2000;
/** Beyond the grace that running answers have. */
const STOP_MS = 1000;

/** Serves on worker threads that listen at one address, so that the kernel spreads connections over them. */
export class WorkerThreads implements RequestThreads {
  readonly #options: WorkerThreadsOptions;
  readonly #threads: Thread[];
  #settings: RequestSettings;
  #address: Address | null = null;
  /** As last told; null = as the snapshot says. */
  #gateways: number | null = null;
  #arrivals: ReadonlyMap<string, ClassCounts>[] = [];
  #stopping = false;
  /** What threads that died had counted. */
  readonly #ended: MetricFigures[] = [];

  constructor(options: WorkerThreadsOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#threads = Array.from({ length: options.count }, (_, index) => this.#start(index, options.first));
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
    const living = await Promise.all(this.#threads.map((thread) => thread.metrics()));
    return [...this.#ended, ...living];
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#threads.map((thread) => thread.stop(graceMs)));
  }

  #order(order: Order): void {
    for (const thread of this.#threads) thread.order(order);
  }

  #start(index: number, first: CompiledSnapshot, deaths = 0): Thread {
    const { selector, state, retryMemory, streamMemory, responseMemory, clock, logger, newsOf } = this.#options;
    const bornMs = clock.nowMs();
    return new Thread({
      worker: this.#options.worker ?? REQUEST_WORKER,
      start: {
        selector,
        state,
        retryMemory,
        streamMemory,
        responseMemory,
        thread: index,
        clockZeroMs: threadZeroMs(),
        settings: this.#settings,
        first,
      },
      clock,
      news: newsOf(index),
      onArrivals: (arrived) => this.#arrivals.push(arrived),
      onDeath: (why, figures) => {
        if (this.#stopping) return;
        logger.error(
          { thread: index, why },
          "a request thread died; its requests are lost, another one takes its place",
        );
        if (figures !== null) this.#ended.push(figures);
        this.#options.onDeath(index);
        const soon = clock.nowMs() - bornMs < GOOD_START_MS;
        const waitMs = Math.min(REPLACE_MAX_MS, REPLACE_MS * 2 ** (soon ? deaths : 0));
        clock.after(waitMs, () => void this.#replace(index, soon ? deaths + 1 : 0));
      },
    });
  }

  async #replace(index: number, deaths: number): Promise<void> {
    if (this.#stopping) return;
    const thread = this.#start(index, this.#options.onReplaced(index), deaths);
    this.#threads[index] = thread;
    if (this.#gateways !== null) thread.order({ kind: "gateways", count: this.#gateways });
    try {
      if (this.#address !== null) await thread.listen(this.#address);
      this.#options.logger.info({ thread: index }, "a request thread is back");
    } catch (error) {
      this.#options.logger.error({ thread: index, why: String(error) }, "a request thread can't listen");
    }
  }
}

interface ThreadOptions {
  readonly worker: URL;
  readonly start: WorkerStart;
  readonly clock: Clock;
  readonly news: ThreadNews;
  readonly onArrivals: (arrived: ReadonlyMap<string, ClassCounts>) => void;
  /** With what it had counted when it was last asked. */
  readonly onDeath: (why: string, figures: MetricFigures | null) => void;
}

/** What a thread says to a question. */
type Answer = Extract<Word, { kind: "metrics" | "decision" }>;

/** One worker, as the process talks to it. */
class Thread {
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #gone: Promise<void>;
  #figures: MetricFigures | null = null;
  #tickets = 0;
  /** Questions under way, by ticket; null answers one that the thread does not. */
  readonly #asked = new Map<number, (word: Answer | null) => void>();
  #onListening: ((word: Extract<Word, { kind: "listening" | "not-listening" }>) => void) | null = null;
  #why = "it ended";

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#worker = new Worker(options.worker, { workerData: options.start });
    this.#worker.on("message", (word: Word) => this.#hear(word));
    this.#worker.on("error", (error) => {
      this.#why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#onListening?.({ kind: "not-listening", message: this.#why, code: undefined });
        for (const answer of this.#asked.values()) answer(null);
        resolve();
        options.onDeath(this.#why, this.#figures);
      });
    });
  }

  order(order: Order): void {
    this.#worker.postMessage(order);
  }

  listen(address: Address): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#onListening = (word) => {
        this.#onListening = null;
        if (word.kind === "listening") resolve(word.url);
        else reject(Object.assign(new Error(word.message), { code: word.code }));
      };
      this.order({ kind: "listen", address });
    });
  }

  /** Of a thread too busy to answer, or dead, what it said last. */
  async metrics(): Promise<MetricFigures> {
    const answer = await this.#ask((ticket) => ({ kind: "metrics", ticket }));
    if (answer?.kind === "metrics") this.#figures = answer.figures;
    return this.#figures ?? [];
  }

  /** A thread too busy to answer, or dead, knows none. */
  async findDecision(id: string): Promise<Decision | null> {
    const answer = await this.#ask((ticket) => ({ kind: "decision", ticket, id }));
    return answer?.kind === "decision" ? answer.decision : null;
  }

  async #ask(question: (ticket: number) => Order): Promise<Answer | null> {
    const ticket = this.#tickets++;
    const asked = new Promise<Answer | null>((resolve) => this.#asked.set(ticket, resolve));
    const cancel = this.#options.clock.after(ANSWER_MS, () => this.#asked.get(ticket)?.(null));
    this.order(question(ticket));
    const answer = await asked;
    cancel();
    this.#asked.delete(ticket);
    return answer;
  }

  async stop(graceMs: number): Promise<void> {
    this.order({ kind: "stop", graceMs });
    const cancel = this.#options.clock.after(graceMs + STOP_MS, () => void this.#worker.terminate());
    await this.#gone;
    cancel();
  }

  #hear(word: Word): void {
    switch (word.kind) {
      case "news":
        for (const item of word.items) this.#pass(item);
        break;
      case "arrivals":
        this.#options.onArrivals(word.arrived);
        break;
      case "metrics":
      case "decision":
        this.#asked.get(word.ticket)?.(word);
        break;
      case "listening":
      case "not-listening":
        this.#onListening?.(word);
    }
  }

  #pass<Item extends NewsItem>([name, ...given]: Item): void {
    const { news } = this.#options;
    (news[name] as (...given: unknown[]) => void)(...given);
  }
}

const REQUEST_WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "./request-worker.ts" : "./request-worker.js",
  import.meta.url,
);

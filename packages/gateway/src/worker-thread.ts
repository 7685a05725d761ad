import { Worker } from "node:worker_threads";
import type { Clock } from "@guidevane/core";
import type { Address } from "./address.ts";
import type { Decision } from "./decision.ts";
import type { ClassCounts } from "./demand.ts";
import type { MetricFigures } from "./metrics.ts";
import { tellNews } from "./news-batch.ts";
import type { ThreadNews } from "./request-thread.ts";
import type { Order, Word, WorkerStart } from "./thread-messages.ts";

export interface WorkerThreadOptions {
  readonly worker: URL;
  readonly start: WorkerStart;
  readonly clock: Clock;
  readonly news: ThreadNews;
  readonly onArrivals: (arrived: ReadonlyMap<string, ClassCounts>) => void;
  /** With what it had counted when it was last asked. */
  readonly onDeath: (why: string, figures: MetricFigures | null) => void;
}

/** A thread that has not answered a question by then is busy; what it said last stands. */
const ANSWER_MS = 2000;
/** Beyond the grace that running answers have. */
const STOP_MS = 1000;

/** What a thread says to a question. */
type Answer = Extract<Word, { kind: "metrics" | "decision" }>;

/** One worker, as the process talks to it. */
export class WorkerThread {
  readonly #options: WorkerThreadOptions;
  readonly #worker: Worker;
  readonly #gone: Promise<void>;
  #figures: MetricFigures | null = null;
  #tickets = 0;
  /** Questions under way, by ticket; null answers one that the thread does not. */
  readonly #asked = new Map<number, (word: Answer | null) => void>();
  #onListening: ((word: Extract<Word, { kind: "listening" | "not-listening" }>) => void) | null = null;
  #why = "it ended";
  #isGone = false;
  #listens = false;

  constructor(options: WorkerThreadOptions) {
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
        this.#isGone = true;
        this.#listens = false;
        resolve();
        options.onDeath(this.#why, this.#figures);
        // They count among those of the dead from now on, and once.
        this.#figures = null;
      });
    });
  }

  get listens(): boolean {
    return this.#listens;
  }

  order(order: Order): void {
    this.#worker.postMessage(order);
  }

  /** Rejects with what it can't listen for, or died of. */
  listen(address: Address): Promise<string> {
    if (this.#isGone) return Promise.reject(new Error(this.#why));
    return new Promise((resolve, reject) => {
      this.#onListening = (word) => {
        this.#onListening = null;
        if (word.kind === "listening") resolve(word.url);
        else reject(Object.assign(new Error(word.message), { code: word.code }));
      };
      this.order({ kind: "listen", address });
    });
  }

  /** What it had counted when it was last asked; nothing of a dead one. */
  get figures(): MetricFigures {
    return this.#figures ?? [];
  }

  /** Of a thread too busy to answer what it said before stands. */
  async askFigures(): Promise<void> {
    await this.#ask((ticket) => ({ kind: "metrics", ticket }));
  }

  /** A thread too busy to answer, or dead, knows none. */
  async findDecision(id: string): Promise<Decision | null> {
    const answer = await this.#ask((ticket) => ({ kind: "decision", ticket, id }));
    return answer?.kind === "decision" ? answer.decision : null;
  }

  async #ask(question: (ticket: number) => Order): Promise<Answer | null> {
    if (this.#isGone) return null;
    const ticket = this.#tickets++;
    const asked = new Promise<Answer | null>((resolve) => this.#asked.set(ticket, resolve));
    const cancel = this.#options.clock.after(ANSWER_MS, () => this.#asked.get(ticket)?.(null));
    this.order(question(ticket));
    const answer = await asked;
    cancel();
    this.#asked.delete(ticket);
    return answer;
  }

  /** Ends it as if it had died of that. */
  end(why: string): void {
    this.#why = why;
    void this.#worker.terminate();
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
        tellNews(word.message, this.#options.news);
        break;
      case "arrivals":
        this.#options.onArrivals(word.arrived);
        break;
      case "metrics":
        // Here, not where the answer is awaited: a thread can die in between, and hands over all that it said.
        this.#figures = word.figures;
        this.#asked.get(word.ticket)?.(word);
        break;
      case "decision":
        this.#asked.get(word.ticket)?.(word);
        break;
      case "listening":
        this.#listens = true;
        this.#onListening?.(word);
        break;
      case "not-listening":
        this.#onListening?.(word);
    }
  }
}

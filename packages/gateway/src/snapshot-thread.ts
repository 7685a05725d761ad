import { Worker } from "node:worker_threads";
import type { SharedState, TableSlots } from "@guidevane/selector";
import type { PreparedSnapshot, Refused, SnapshotFacts } from "./snapshot-reading.ts";
import type { SnapshotText } from "./snapshot-text.ts";

/** What the thread begins with. */
export interface SnapshotThreadStart {
  readonly selector: "native" | "ts";
  readonly state: SharedState;
}

/** What it is asked: one thing at a time. */
export type SnapshotTask =
  | { readonly kind: "read"; readonly text: SnapshotText }
  | { readonly kind: "compile"; readonly slots: TableSlots };

/** What it answers. */
export type SnapshotAnswer =
  | { readonly ok: true; readonly found: SnapshotFacts | Refused | PreparedSnapshot }
  | { readonly ok: false; readonly message: string };

interface Asked {
  resolve(answer: SnapshotAnswer): void;
  reject(error: Error): void;
}

/** A thread that reads snapshots, started with the first one. After its death the next one starts another. */
export class SnapshotThread {
  readonly #start: SnapshotThreadStart;
  readonly #module: URL;
  #worker: Worker | null = null;
  #asked: Asked | null = null;
  #stopped = false;

  /** @param module what it runs; left out = this package's */
  constructor(start: SnapshotThreadStart, module: URL = SNAPSHOT_WORKER) {
    this.#start = start;
    this.#module = module;
  }

  read(text: SnapshotText): Promise<SnapshotFacts | Refused> {
    return this.#ask({ kind: "read", text }) as Promise<SnapshotFacts | Refused>;
  }

  compile(slots: TableSlots): Promise<PreparedSnapshot> {
    return this.#ask({ kind: "compile", slots }) as Promise<PreparedSnapshot>;
  }

  /** What is under way then is rejected, and so is what comes later. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#worker?.terminate();
  }

  async #ask(task: SnapshotTask): Promise<unknown> {
    if (this.#stopped) throw new Error("the thread that reads snapshots was stopped");
    this.#worker ??= this.#begin();
    const worker = this.#worker;
    const answer = await new Promise<SnapshotAnswer>((resolve, reject) => {
      this.#asked = { resolve, reject };
      worker.postMessage(task);
    });
    this.#asked = null;
    if (!answer.ok) throw new Error(answer.message);
    return answer.found;
  }

  #begin(): Worker {
    const worker = new Worker(this.#module, { workerData: this.#start });
    let why = "it ended";
    worker.on("message", (answer: SnapshotAnswer) => this.#asked?.resolve(answer));
    worker.on("error", (error) => {
      why = error instanceof Error ? error.message : String(error);
    });
    worker.once("exit", () => {
      this.#worker = null;
      this.#asked?.reject(new Error(`the thread that reads snapshots died: ${why}`));
      this.#asked = null;
    });
    return worker;
  }
}

const SNAPSHOT_WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "./snapshot-worker.ts" : "./snapshot-worker.js",
  import.meta.url,
);

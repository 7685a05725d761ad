import type { Clock } from "@guidevane/core";
import type { EventHeap } from "./event-heap.ts";

/** The lab's time as a `Clock`, for the production code that runs in it: timers are events like all others. */
export class LabClock implements Clock {
  now = 0;
  readonly #heap: EventHeap;
  readonly #kind: number;
  readonly #tasks = new Map<number, () => void>();
  #next = 0;

  /** @param kind of the events whose subject it runs by `fire` */
  constructor(heap: EventHeap, kind: number) {
    this.#heap = heap;
    this.#kind = kind;
  }

  nowMs(): number {
    return this.now;
  }

  wallMs(): number {
    return WALL_START_MS + this.now;
  }

  after(delayMs: number, task: () => void): () => void {
    const id = this.#next++;
    this.#tasks.set(id, task);
    this.#heap.put(this.now + Math.max(0, delayMs), this.#kind, id, 0);
    return () => {
      this.#tasks.delete(id);
    };
  }

  /** Runs `task` every `everyMs`, for good. */
  every(everyMs: number, task: () => void): void {
    this.after(everyMs, () => {
      task();
      this.every(everyMs, task);
    });
  }

  /** The event of a timer is due. */
  fire(id: number): void {
    const task = this.#tasks.get(id);
    this.#tasks.delete(id);
    task?.();
  }
}

/** Any fixed instant: equal seeds must give equal bytes, stamps included. */
const WALL_START_MS = Date.UTC(2026, 0, 1);

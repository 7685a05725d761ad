import type { Clock } from "@guidevane/core";
import { type AdmissionClass, type LimitReason, Occupancy } from "./occupancy.ts";
import { LocalStreams, type StreamCounts } from "./stream-counts.ts";

/** Why a request that some engine could serve was refused to protect the others. */
export type ShedReason = "planned" | LimitReason | "queue-full" | "queue-timeout";

export interface AdmissionLimits {
  /** Streams of the whole gateway. */
  readonly maxStreams: number;
  /** Requests that may wait; 0 = none does. */
  readonly queue: number;
  /** Longest wait. */
  readonly queueMs: number;
}

export type Admitted = { readonly kind: "admitted" } | { readonly kind: "shed"; readonly reason: ShedReason };

/** A request that waits for its turn. */
export interface Waiting {
  readonly kind: "waiting";
  readonly turn: Promise<Admitted>;
  /** Its client is gone: it leaves the queue at once, and its turn never comes. */
  leave(): void;
}

const ADMITTED: Admitted = { kind: "admitted" };

/** While requests wait, room that others made (another thread, a newer plan) is looked for this often. */
const LOOK_AGAIN_MS = 50;

interface Entry {
  readonly requestClass: string;
  readonly priority: number;
  readonly resolve: (admitted: Admitted) => void;
  readonly stopTimer: () => void;
}

/**
 * Admission: who comes in, who waits, who is sent away. A request that was let in holds its place until its
 * answer is over, not only until its head. Waiting is first come, first served within a priority, and higher ones first.
 */
export class Admission {
  readonly occupancy: Occupancy;
  readonly #clock: Clock;
  #limits: AdmissionLimits;
  #waiting: Entry[] = [];
  #looking = false;

  constructor(clock: Clock, limits: AdmissionLimits, counts: StreamCounts = new LocalStreams(), threads = 1) {
    this.#clock = clock;
    this.occupancy = new Occupancy(counts, threads);
    this.#limits = limits;
  }

  /** Limits of a newer snapshot or another fleet file. */
  adopt(classes: readonly AdmissionClass[], limits: AdmissionLimits): void {
    this.#limits = limits;
    this.occupancy.adopt(classes, limits.maxStreams);
    this.#letIn();
  }

  /** @param deadlineMs when its client no longer waits, by the clock; null = it has not said */
  ask(requestClass: string, deadlineMs: number | null): Admitted | Waiting {
    const nowMs = this.#clock.nowMs();
    const priority = this.occupancy.priority(requestClass);
    const reason = this.occupancy.refusal(requestClass, nowMs);
    if (reason === null && !this.#overtakes(requestClass, priority)) {
      this.occupancy.entered(requestClass, nowMs);
      return ADMITTED;
    }
    if (this.#limits.queue === 0) return { kind: "shed", reason: reason ?? "class-limit" };
    const waitMs = Math.min(this.#limits.queueMs, (deadlineMs ?? Number.POSITIVE_INFINITY) - nowMs);
    if (waitMs <= 0) return { kind: "shed", reason: "queue-timeout" };
    if (!this.#makeRoom(priority)) return { kind: "shed", reason: "queue-full" };
    return this.#wait(requestClass, priority, waitMs);
  }

  /** The answer of a request that was let in is over. */
  leave(requestClass: string): void {
    this.occupancy.left(requestClass);
    this.#letIn();
  }

  /** Requests of a class that wait. */
  depth(requestClass: string): number {
    return this.#waiting.reduce((sum, each) => sum + (each.requestClass === requestClass ? 1 : 0), 0);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  #wait(requestClass: string, priority: number, waitMs: number): Waiting {
    const { promise, resolve } = Promise.withResolvers<Admitted>();
    const stopTimer = this.#clock.after(waitMs, () => {
      this.#remove(entry);
      resolve({ kind: "shed", reason: "queue-timeout" });
    });
    const entry: Entry = { requestClass, priority, resolve, stopTimer };
    // Behind all of its priority and above.
    const at = this.#waiting.findIndex((each) => each.priority < priority);
    this.#waiting.splice(at === -1 ? this.#waiting.length : at, 0, entry);
    this.#lookAgain();
    return { kind: "waiting", turn: promise, leave: () => this.#remove(entry) };
  }

  /** Whether one that waits, of the same class or no lower priority, could come in as well. */
  #overtakes(requestClass: string, priority: number): boolean {
    return this.#waiting.some((each) => each.requestClass === requestClass && each.priority >= priority);
  }

  /** A place in the queue: a free one, or that of the last of the lowest priority. */
  #makeRoom(priority: number): boolean {
    if (this.#waiting.length < this.#limits.queue) return true;
    const last = this.#waiting.at(-1);
    if (last === undefined || last.priority >= priority) return false;
    this.#remove(last);
    last.resolve({ kind: "shed", reason: "queue-full" });
    return true;
  }

  #remove(entry: Entry): void {
    entry.stopTimer();
    const at = this.#waiting.indexOf(entry);
    if (at !== -1) this.#waiting.splice(at, 1);
  }

  #letIn(): void {
    if (this.#waiting.length === 0) return;
    const nowMs = this.#clock.nowMs();
    const full = new Set<string>();
    for (const entry of [...this.#waiting]) {
      if (full.has(entry.requestClass)) continue;
      if (this.occupancy.refusal(entry.requestClass, nowMs) !== null) {
        full.add(entry.requestClass);
        continue;
      }
      this.#remove(entry);
      this.occupancy.entered(entry.requestClass, nowMs);
      entry.resolve(ADMITTED);
    }
  }

  #lookAgain(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#clock.after(LOOK_AGAIN_MS, () => {
      this.#looking = false;
      this.#letIn();
      if (this.#waiting.length > 0) this.#lookAgain();
    });
  }
}

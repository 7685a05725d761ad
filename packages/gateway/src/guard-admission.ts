import type { Clock, ClusterSnapshot, Fleet } from "@guidevane/core";
import {
  Admission,
  type Admitted,
  admissionClasses,
  FirstShare,
  partOf,
  plannedShed,
  type Waiting,
} from "@guidevane/guard";
import type { SharedStreams } from "./guard-streams.ts";
import type { Routing } from "./routing.ts";

/** What the plan's sheds must know of a request that was just routed. */
export interface RoutedFacts {
  readonly cell: number;
  readonly first: boolean;
  readonly keyHash2: number;
  readonly sinceControlMs: number;
}

export interface GuardAdmissionOptions {
  readonly clock: Clock;
  readonly streams: SharedStreams;
  readonly limits: () => Fleet["gateway"]["limits"];
}

/** One thread's admission: the plan's sheds first, then what the engines and the gateway can hold. */
export class GuardAdmission {
  readonly #options: GuardAdmissionOptions;
  readonly #admission: Admission;
  readonly #firstShares = new Map<string, FirstShare>();
  #snapshot: ClusterSnapshot | null = null;
  #gateways = 1;

  constructor(options: GuardAdmissionOptions) {
    this.#options = options;
    this.#admission = new Admission(options.clock, options.limits(), options.streams, options.streams.threads);
  }

  /** Requests are held to this one's limits from now on. */
  use(snapshot: ClusterSnapshot): void {
    this.#snapshot = snapshot;
    this.#gateways = Math.max(1, snapshot.gateways);
    this.reconfigure();
  }

  /** So many gateways of the cluster live: each has its part of what the cluster may hold. */
  setGateways(count: number): void {
    this.#gateways = Math.max(1, count);
    this.reconfigure();
  }

  /** The fleet file's limits may be others. */
  reconfigure(): void {
    if (this.#snapshot !== null)
      this.#admission.adopt(admissionClasses(this.#snapshot, this.#gateways), this.#options.limits());
  }

  /** @param deadlineAtMs when the client no longer waits, by the clock; null = it has not said */
  ask(requestClass: string, facts: RoutedFacts, deadlineAtMs: number | null): Admitted | Waiting {
    const { first, keyHash2, sinceControlMs } = facts;
    const share = this.#firstShareOf(requestClass);
    share.add(first, this.#options.clock.nowMs());
    const shed = this.#snapshot?.cells[facts.cell]?.shed ?? 0;
    if (plannedShed({ shed, firstShare: share.value, first, keyHash2, sinceControlMs }))
      return { kind: "shed", reason: "planned" };
    return this.#admission.ask(requestClass, deadlineAtMs);
  }

  /** The answer of a request that was let in is over. */
  leave(requestClass: string): void {
    this.#admission.leave(requestClass);
  }

  /** An attempt at an engine begins (+1) or is over (−1). */
  countAttempt(slot: number, change: 1 | -1): void {
    this.#options.streams.addAttempt(slot, change);
  }

  /** Whether an engine has as many requests of this gateway as it may. */
  isFull({ snapshot }: Routing, engine: string | null, slot: number): boolean {
    const most = engine === null ? undefined : snapshot.engines[engine]?.maxStreams;
    return most !== undefined && this.#options.streams.attempts(slot) >= partOf(most, this.#gateways);
  }

  #firstShareOf(requestClass: string): FirstShare {
    let share = this.#firstShares.get(requestClass);
    if (share === undefined) {
      share = new FirstShare();
      this.#firstShares.set(requestClass, share);
    }
    return share;
  }
}

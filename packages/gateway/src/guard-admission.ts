import { type Clock, type ClusterSnapshot, type Fleet, type SnapshotCell, STREAM_LIMIT_FACTOR } from "@guidevane/core";
import { Admission, type AdmissionClass, type Admitted, FirstShare, plannedShed, type Waiting } from "@guidevane/guard";
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

/** One thread's door to the engines: the plan's sheds first, then what the engines and the gateway can hold. */
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

/** One gateway's part of a hard limit. Where there are more gateways than streams each may have one. */
function partOf(limit: number, gateways: number): number {
  return Math.max(1, Math.floor(limit / gateways));
}

/** Limits of the snapshot's cells for one of so many gateways. */
function admissionClasses(snapshot: ClusterSnapshot, gateways: number): AdmissionClass[] {
  return snapshot.cells.map((cell) => {
    const { model, priority } = snapshot.classes[cell.class]!;
    return {
      name: cell.class,
      model,
      priority,
      work: cell.work,
      // A gateway whose part is less than one stream would serve nobody.
      streamLimit: Math.max(1, cell.streamLimit / gateways),
      streamWps: streamWps(cell, snapshot),
      engineLimit: engineLimit(cell, snapshot, gateways),
    };
  });
}

/**
 * Work units/s of one stream at full load. The limit is 1.25 × full rate × time, and the full rate is the sum over engines
 * of demand × weight ÷ utilisation; where that says nothing (a silent class, no plan) the planned time is taken.
 */
function streamWps(
  { engines, weights, expectedMs, demandRps, shed, work, streamLimit }: SnapshotCell,
  snapshot: ClusterSnapshot,
): number {
  let fullRps = 0;
  let meanMs = 0;
  for (const [at, id] of engines.entries()) {
    const { loadWps, capacityWps } = snapshot.engines[id]!;
    meanMs += weights[at]! * expectedMs[at]!;
    if (loadWps > 0) fullRps += (demandRps * (1 - shed) * weights[at]! * capacityWps) / loadWps;
  }
  const plannedWps = (work * 1000) / Math.max(meanMs, 1);
  const fullWps = (work * fullRps * STREAM_LIMIT_FACTOR) / streamLimit;
  return fullWps > plannedWps / SLOWEST && fullWps < plannedWps ? fullWps : plannedWps;
}

/** At full load a request takes longer than planned, but not so many times as long: such a figure is a silent class's. */
const SLOWEST = 10;

function engineLimit({ engines, reserves }: SnapshotCell, snapshot: ClusterSnapshot, gateways: number): number {
  let sum = 0;
  for (const id of [...engines, ...reserves.map(({ engine }) => engine)]) {
    const most = snapshot.engines[id]!.maxStreams;
    if (most === undefined) return Number.POSITIVE_INFINITY;
    sum += partOf(most, gateways);
  }
  return sum;
}

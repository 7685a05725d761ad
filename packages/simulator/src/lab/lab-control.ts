import { isDeepStrictEqual } from "node:util";
import { DemandLevels } from "@guidevane/signals";
import type { LabEngines } from "./lab-engines.ts";
import type { LabFleet } from "./lab-fleet.ts";
import type { LabOptions } from "./lab-options.ts";
import type { LabClock } from "./lab-timers.ts";
import type { Policy } from "./policy.ts";
import { copyBoard, type SignalBoard, signalBoard } from "./signal-board.ts";
import type { Tally } from "./tally.ts";

type ClusterLevels = ReturnType<DemandLevels["of"]>;

interface Asked {
  readonly atMs: number;
  readonly reports: number;
  readonly levels: ClusterLevels;
  readonly isSettled: boolean;
}

/**
 * What the control plane hears, and when: polls of the engines, the gateways' reports of demand, engines that are gone. It
 * calls `tick` in time and at once on the loss of an engine.
 */
export class LabControl {
  /** As gateways and control plane see it. */
  readonly board: SignalBoard;
  /** Ready replicas by engine, as last polled. */
  readonly ready: Float64Array;
  /** For polls that are on their way. */
  readonly #boards: SignalBoard[] = [];
  readonly #fleet: LabFleet;
  readonly #engines: LabEngines;
  readonly #clock: LabClock;
  readonly #tally: Tally;
  readonly #gatewayCluster: Uint16Array;
  #levels = new DemandLevels();
  /** Arrivals since the last report: gateway · classes + class. */
  readonly #offered: Uint32Array;
  /** By cluster: what was asked last. */
  readonly #asked = new Map<string, Asked>();
  #isUp = true;
  #reports = 0;
  #policy!: Policy;

  constructor(fleet: LabFleet, engines: LabEngines, clock: LabClock, tally: Tally, gatewayCluster: Uint16Array) {
    this.#fleet = fleet;
    this.#engines = engines;
    this.#clock = clock;
    this.#tally = tally;
    this.#gatewayCluster = gatewayCluster;
    this.board = signalBoard(fleet.engines.length);
    this.ready = Float64Array.from(fleet.engines, ({ replicas }) => replicas);
    this.#offered = new Uint32Array(gatewayCluster.length * fleet.classes.length);
  }

  start({ signals = DEFAULT_SIGNALS, sampleMs = SAMPLE_MS, fleet }: LabOptions, policy: Policy): void {
    this.#policy = policy;
    this.#clock.every(signals.everyMs, () => this.#poll(signals));
    this.#clock.every(REPORT_MS, () => this.#report());
    // The first plan comes before the first request: fleets don't start under full load.
    this.#tick();
    this.#clock.every(fleet.policy.tickMs, () => this.#tick());
    this.#clock.every(sampleMs, () => this.#sample(sampleMs));
  }

  /** While it is down it hears nothing and says nothing; it comes back as a new process, which has heard nothing yet. */
  setUp(isUp: boolean): void {
    if (isUp && !this.#isUp) {
      this.#levels = new DemandLevels();
      this.#asked.clear();
    }
    this.#isUp = isUp;
  }

  arrived(gateway: number, requestClass: number): void {
    this.#offered[gateway * this.#fleet.classes.length + requestClass]! += 1;
  }

  /** Offered requests/s of a cell: reported; before that, and in part while that is young, what the fleet file says. */
  demandRps(cell: number): number {
    const { cluster, requestClass } = this.#names(cell);
    const filedRps = this.#fleet.fleet.demandRps.get(cluster)?.get(requestClass);
    const level = this.#levelsOf(cluster)?.get(requestClass);
    if (level === undefined) return filedRps ?? 0;
    const known = filedRps === undefined ? 1 : Math.min(1, level.overMs / BELIEVED_MS);
    return known * level.offeredRps + (1 - known) * (filedRps ?? 0);
  }

  /** How much of an engine's answers fail, by the gateways' reports. */
  severity(engine: number): number {
    return this.#levels.evidence(this.#fleet.engines[engine]!.id, this.#clock.now).severity;
  }

  /** One deviation by chance of what is reported. */
  demandDeviationRps(cell: number): number {
    const { cluster, requestClass } = this.#names(cell);
    return this.#levelsOf(cluster)?.get(requestClass)?.deviationRps ?? 0;
  }

  /**
   * What a cluster asks for, by what was reported. To ask is to judge whether demand has changed, which is remembered: so
   * within one instant it is asked until it says the same twice, and no more.
   */
  #levelsOf(cluster: string): ClusterLevels {
    const last = this.#asked.get(cluster);
    const isSameTime = last !== undefined && last.atMs === this.#clock.now && last.reports === this.#reports;
    if (isSameTime && last.isSettled) return last.levels;
    const levels = this.#levels.of(cluster, this.#clock.now);
    const isSettled = isSameTime && isDeepStrictEqual(levels, last.levels);
    this.#asked.set(cluster, { atMs: this.#clock.now, reports: this.#reports, levels, isSettled });
    return levels;
  }

  #names(cell: number): { cluster: string; requestClass: string } {
    const { clusters, classes } = this.#fleet;
    return {
      cluster: clusters[cell % clusters.length]!.name,
      requestClass: classes[Math.floor(cell / clusters.length)]!.name,
    };
  }

  /** Weights of a cell were published. */
  published(cell: number, weights: Float64Array): void {
    const demand = this.#fleet.eligible.map((_, each) => this.demandRps(each));
    const all = demand.reduce((sum, each) => sum + each, 0);
    this.#tally.churn.add(cell, weights, all > 0 ? demand[cell]! / all : 0);
  }

  #tick(): void {
    if (this.#isUp) this.#policy.tick?.();
  }

  #poll({ everyMs, delayMs }: { readonly everyMs: number; readonly delayMs: number }): void {
    const fresh = this.#boards.pop() ?? signalBoard(this.#fleet.engines.length);
    copyBoard(this.board, fresh);
    this.#engines.poll(fresh, everyMs);
    const ready = Float64Array.from(this.#fleet.engines, ({ replicas }, e) => replicas * this.#engines.alive[e]!);
    this.#clock.after(delayMs, () => {
      copyBoard(fresh, this.board);
      this.#boards.push(fresh);
      const isLoss = ready.some((count, engine) => count < this.ready[engine]!);
      this.ready.set(ready);
      if (isLoss) this.#tick();
    });
  }

  #report(): void {
    const { classes, clusters } = this.#fleet;
    this.#reports += 1;
    for (const [gateway, cluster] of this.#gatewayCluster.entries()) {
      const counts = classes.map((spec, k) => {
        const offered = this.#offered[gateway * classes.length + k]!;
        return [spec.name, { offered, work: offered * spec.work, retries: 0, clientRetries: 0, shed: 0 }] as const;
      });
      this.#offered.fill(0, gateway * classes.length, (gateway + 1) * classes.length);
      if (!this.#isUp) continue;
      this.#levels.add(
        {
          gateway: String(gateway),
          cluster: clusters[cluster]!.name,
          seq: this.#reports,
          windowMs: REPORT_MS,
          classes: Object.fromEntries(counts),
          engines: this.#policy.report?.(gateway) ?? {},
        },
        this.#clock.now,
      );
    }
  }

  #sample(sampleMs: number): void {
    const tally = this.#tally;
    const { moved, reversals } = tally.churn.take();
    tally.samples.push({
      atMs: this.#clock.now,
      utilisation: this.#engines.utilisationSince(sampleMs),
      requests: this.#engines.requestsThere(),
      moved,
      reversals,
    });
  }
}

const DEFAULT_SIGNALS = { everyMs: 1000, delayMs: 100 };
const SAMPLE_MS = 1000;
/** Gateways report demand so often, as in production. */
const REPORT_MS = 1000;
/** A level of so much traffic is believed whole. */
const BELIEVED_MS = 30_000;

import { DEMAND_FLOOR_RPS, type DemandReport } from "@guidevane/core";
import { Level } from "./level.ts";
import { LevelSum } from "./level-sum.ts";

/** A gateway unheard for this many of its windows is gone while another of its cluster reports. */
const WINDOWS_HEARD = 3;
/** A silent cluster keeps its last demand for this long. */
const KEEP_MS = 600_000;
/** A cluster whose gateways never saw a request speaks for itself only after this: until then it is taken to be starting. */
const STARTING_MS = 30_000;
/** A report up to this far behind the newest of its gateway came late; further behind, the gateway was restarted. */
const LATE_REPORTS = 3;
/** An engine that answered this lately answers. */
const SUCCESS_MS = 5000;
/** A change of demand is followed for this long after it was last seen. */
const FOLLOW_MS = 180_000;
/** Attempts and measured work of a gateway count half after about this long. */
const EVIDENCE_MS = 30_000;

export interface DemandLevel {
  /** Offered requests/s: every arrival, client retries included. */
  readonly offeredRps: number;
  /** One deviation of it by chance: what it would differ by if it were measured again. */
  readonly deviationRps: number;
  /** Measured units of work of a request; null before the first arrival. */
  readonly work: number | null;
  /** Since the last report of the cluster. */
  readonly ageMs: number;
  /** Whole windows of traffic that the level is a mean of; of little time it is a guess. */
  readonly overMs: number;
}

/** What gateways say of one engine together. */
export interface EngineEvidence {
  /** 0..1: attempt-weighted mean of the gateways' failing factors, from 1. */
  readonly severity: number;
  /** Least of the gateways' factors for slowness; shown, and no part of the plan. */
  readonly slowFactor: number;
  /** Within the last windows. */
  readonly attempts: number;
  readonly faults: number;
  /** Live gateways that tried it lately. */
  readonly gateways: number;
  /** Live gateways that call it dead. */
  readonly dead: number;
  /** Live gateways that had an answer from it in their last window. */
  readonly successes: number;
  /** Live gateways that had one within the last 5 s: an engine with little traffic is silent in most windows. */
  readonly lateSuccesses: number;
}

/** What became of a report. */
export interface Taken {
  /** False = an old one, come late or twice, which counts nothing. */
  readonly counted: boolean;
  /** The gateway calls an engine dead that it did not before, or no longer one that it did. */
  readonly deathsChanged: boolean;
}

interface CellSum {
  readonly sum: LevelSum;
  offered: number;
  work: number;
  overMs: number;
}

interface Gateway {
  readonly cluster: string;
  readonly firstMs: number;
  seq: number;
  heardMs: number;
  windowMs: number;
  offeredEver: boolean;
  leaving: boolean;
  readonly classes: Map<string, { readonly level: Level; offered: number; work: number }>;
  readonly engines: Map<string, EngineReport>;
}

interface EngineReport {
  readonly attempts: number;
  readonly faults: number;
  readonly failFactor: number;
  readonly slowFactor: number;
  readonly dead: boolean;
  /** Attempts, fading. */
  readonly recent: number;
  readonly successMs: number;
}

/**
 * Demand of each cell, and what gateways found of each engine, from their reports. Every time is passed in, in ms of one
 * monotonic clock.
 */
export class DemandLevels {
  readonly #gateways = new Map<string, Gateway>();
  /** By cell: when its demand last changed beyond chance. */
  readonly #changedMs = new Map<string, number>();

  /** Takes a report in. */
  add(report: DemandReport, nowMs: number): Taken {
    this.#forget(nowMs);
    const key = `${report.cluster}\n${report.gateway}`;
    let gateway = this.#gateways.get(key);
    if (gateway !== undefined && report.seq <= gateway.seq && gateway.seq - report.seq < LATE_REPORTS)
      return { counted: false, deathsChanged: false };
    if (gateway === undefined) {
      gateway = {
        cluster: report.cluster,
        firstMs: nowMs,
        seq: report.seq,
        heardMs: nowMs,
        windowMs: report.windowMs,
        offeredEver: false,
        leaving: false,
        classes: new Map(),
        engines: new Map(),
      };
      this.#gateways.set(key, gateway);
    }
    gateway.seq = report.seq;
    gateway.heardMs = nowMs;
    gateway.leaving = report.leaving ?? false;
    // The first word of leaving comes at once, after a part of a window; the next one as usual.
    if (!gateway.leaving) gateway.windowMs = report.windowMs;
    takeClasses(gateway, report);
    return { counted: true, deathsChanged: takeEngines(gateway, report, nowMs) };
  }

  /**
   * Offered demand by class of a cluster that has reported; null for one that has not, or is still starting.
   *
   * While nothing has changed beyond chance it is the mean of up to 10 minutes, so that what is planned by it stands still
   * when demand does. When the last half minute differs from that, in a cell or in its cluster as a whole, the long mean
   * begins anew and the recent one is the demand until 3 minutes have passed without another change; a rise of the last
   * seconds beyond chance is believed at once.
   */
  of(cluster: string, nowMs: number): ReadonlyMap<string, DemandLevel> | null {
    const members = this.#members(cluster);
    if (members.length === 0) return null;
    const heardMs = Math.max(...members.map((each) => each.heardMs));
    const firstMs = Math.min(...members.map((each) => each.firstMs));
    if (!members.some((each) => each.offeredEver) && nowMs - firstMs < STARTING_MS) return null;
    const ageMs = nowMs - heardMs;
    const cells = new Map<string, CellSum>();
    const whole = new LevelSum();
    for (const gateway of members) {
      if (heardMs - gateway.heardMs > WINDOWS_HEARD * gateway.windowMs) continue;
      for (const [name, { level, offered, work }] of gateway.classes) {
        const cell = cells.get(name) ?? { sum: new LevelSum(), offered: 0, work: 0, overMs: 0 };
        cells.set(name, cell);
        cell.sum.add(level);
        whole.add(level);
        cell.offered += offered;
        cell.work += work;
        cell.overMs = Math.max(cell.overMs, level.overMs);
      }
    }
    const clusterChanged = whole.hasChanged;
    return new Map(
      [...cells].map(([name, { sum, offered, work, overMs }]) => {
        const { rps, deviationRps } = this.#follow(`${cluster}\n${name}`, sum, clusterChanged, nowMs);
        return [
          name,
          {
            offeredRps: ageMs > KEEP_MS ? DEMAND_FLOOR_RPS : Math.max(DEMAND_FLOOR_RPS, rps),
            deviationRps,
            work: offered > 0 ? work / offered : null,
            ageMs,
            overMs,
          },
        ];
      }),
    );
  }

  /** Which mean of a cell is its demand, with its deviation by chance. Asked again at the same time it says the same. */
  #follow(cell: string, sum: LevelSum, clusterChanged: boolean, nowMs: number): { rps: number; deviationRps: number } {
    const isFollowed = () => nowMs - (this.#changedMs.get(cell) ?? Number.NEGATIVE_INFINITY) < FOLLOW_MS;
    if (sum.isAbove(isFollowed() ? sum.recentRps : sum.longRps)) {
      sum.jump();
      this.#changedMs.set(cell, nowMs);
    } else if (clusterChanged || sum.hasChanged) {
      sum.restart();
      this.#changedMs.set(cell, nowMs);
    }
    // What has gone silent is not drawn out over the memory of a long mean.
    if (isFollowed() || sum.recentRps < DEMAND_FLOOR_RPS)
      return { rps: sum.recentRps, deviationRps: sum.recentDeviationRps };
    return { rps: sum.longRps, deviationRps: sum.longDeviationRps };
  }

  /** Gateways of a cluster heard within their last windows, and not on their way out. */
  live(cluster: string, nowMs: number): number {
    return this.#members(cluster).filter((each) => isLive(each, nowMs) && !each.leaving).length;
  }

  /** What live gateways found of an engine. */
  evidence(engine: string, nowMs: number): EngineEvidence {
    const live = [...this.#gateways.values()].filter((gateway) => isLive(gateway, nowMs));
    const reports = live.flatMap((gateway) => gateway.engines.get(engine) ?? []);
    const sum = (of: (report: EngineReport) => number) => reports.reduce((total, each) => total + of(each), 0);
    const count = (is: (report: EngineReport) => boolean) => reports.filter(is).length;
    // A gateway that has not tried the engine lately knows next to nothing of it, and says so with a factor of 1.
    const weight = ({ recent }: EngineReport) => recent + UNTRIED;
    const failing = sum((report) => weight(report) * (1 - report.failFactor));
    return {
      severity: reports.length === 0 ? 0 : failing / sum(weight),
      slowFactor: reports.reduce((least, each) => Math.min(least, each.slowFactor), 1),
      attempts: sum(({ attempts }) => attempts),
      faults: sum(({ faults }) => faults),
      gateways: count(({ attempts }) => attempts > 0),
      dead: count(({ dead }) => dead),
      successes: count(({ dead, attempts, faults }) => !dead && attempts > faults),
      lateSuccesses: count(({ dead, successMs }) => !dead && nowMs - successMs <= SUCCESS_MS),
    };
  }

  #members(cluster: string): Gateway[] {
    return [...this.#gateways.values()].filter((each) => each.cluster === cluster);
  }

  /** A cluster's last gateways are kept for good: their demand turned to the floor is not "no report yet". */
  #forget(nowMs: number): void {
    const newestMs = new Map<string, number>();
    for (const { cluster, heardMs } of this.#gateways.values())
      newestMs.set(cluster, Math.max(heardMs, newestMs.get(cluster) ?? heardMs));
    for (const [key, { cluster, heardMs }] of this.#gateways)
      if (heardMs < newestMs.get(cluster)! && nowMs - heardMs > KEEP_MS) this.#gateways.delete(key);
  }
}

/** Weight of a gateway without attempts, in attempts: it decides only where none has any. */
const UNTRIED = 1e-6;

function isLive(gateway: Gateway, nowMs: number): boolean {
  return nowMs - gateway.heardMs <= WINDOWS_HEARD * gateway.windowMs;
}

function takeClasses(gateway: Gateway, report: DemandReport): void {
  const kept = Math.exp(-report.windowMs / EVIDENCE_MS);
  for (const name of Object.keys(report.classes)) {
    if (!gateway.classes.has(name)) gateway.classes.set(name, { level: new Level(), offered: 0, work: 0 });
  }
  for (const [name, each] of gateway.classes) {
    // A class left out of a report had no arrivals in its window.
    const said = report.classes[name];
    const offered = said?.offered ?? 0;
    each.level.add(offered, report.windowMs);
    each.offered = each.offered * kept + offered;
    each.work = each.work * kept + (said?.work ?? 0);
    if (offered > 0) gateway.offeredEver = true;
  }
}

/** True when what the gateway calls dead has changed. */
function takeEngines(gateway: Gateway, report: DemandReport, nowMs: number): boolean {
  const kept = Math.exp(-report.windowMs / EVIDENCE_MS);
  let deathsChanged = false;
  for (const [id, before] of gateway.engines) {
    if (Object.hasOwn(report.engines, id)) continue;
    if (before.dead) deathsChanged = true;
    gateway.engines.delete(id);
  }
  for (const [id, said] of Object.entries(report.engines)) {
    const before = gateway.engines.get(id);
    if (said.dead !== (before?.dead ?? false)) deathsChanged = true;
    gateway.engines.set(id, {
      attempts: said.attempts,
      faults: said.faults,
      failFactor: said.failFactor,
      slowFactor: said.slowFactor,
      dead: said.dead,
      recent: (before?.recent ?? 0) * kept + said.attempts,
      successMs: said.attempts > said.faults ? nowMs : (before?.successMs ?? Number.NEGATIVE_INFINITY),
    });
  }
  return deathsChanged;
}

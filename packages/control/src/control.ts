import {
  type Clock,
  type DemandReport,
  type FeedEvent,
  type Fleet,
  type Publication,
  type Random,
  SIGNAL_NAMES,
  type Store,
  snapshotTag,
} from "@guidevane/core";
import type { Gate, PlanWarm } from "@guidevane/optimizer";
import { DemandLevels } from "@guidevane/signals";
import type { Analyst } from "./analyst.ts";
import { Collector } from "./collect.ts";
import { DemandClaims } from "./demand-claims.ts";
import type { Prober } from "./engine-probe.ts";
import { adminStateOf, type EngineState, engineStates } from "./engine-state.ts";
import { Feed } from "./feed.ts";
import { ConditionLog, type ControlLogger } from "./log.ts";
import { ControlMetrics } from "./metrics.ts";
import { Operator } from "./operator.ts";
import { Published } from "./published.ts";
import type { Solver } from "./solver-pool.ts";
import { tellFailOpen, tellTick } from "./tell-tick.ts";
import { type HeldBecause, tick } from "./tick.ts";
import { TickLoop } from "./tick-loop.ts";

export interface ControlParts {
  readonly fleet: Fleet;
  readonly store: Store;
  readonly solver: Solver;
  readonly analyst: Analyst;
  readonly prober: Prober;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: ControlLogger;
  /** Solves and explains, and publishes nothing. */
  readonly advise?: boolean;
}

/** How often the feed repeats what the collector knows: as often as engines are scraped. Changes go out at once. */
const SIGNALS_FEED_MS = 2000;

/** The control plane without its sockets: what it knows, its loops, and what an operator may say to it. */
export class Control {
  readonly store: Store;
  readonly solver: Solver;
  readonly analyst: Analyst;
  readonly clock: Clock;
  readonly advise: boolean;
  readonly operator: Operator;
  readonly levels = new DemandLevels();
  readonly claims = new DemandClaims();
  readonly published = new Published();
  readonly metrics = new ControlMetrics();
  readonly feed: Feed;
  /** What the last plan left for the next: it may be solved by another thread. */
  warm: PlanWarm | null = null;
  /** What the last tick would have published, while an operator holds it back; null when it did publish. */
  advice: Publication | null = null;
  /** What the last tick found of the weights that were published before it; null before the first. */
  certified: { readonly wallMs: number; readonly gate: Gate } | null = null;
  /** A later control plane has the store: what this one solves is refused until it is restarted. */
  replaced = false;
  #fleet: Fleet;
  /** Health and ready replicas of each engine as last logged: its probe and its metrics page bring the same news. */
  readonly #toldOf = new Map<string, string>();
  readonly #prober: Prober;
  readonly #collector: Collector;
  readonly #loop: TickLoop;
  readonly logger: ControlLogger;
  readonly conditions: ConditionLog;
  /** Publications, one after another: a tick's and a rolled back one would be each other's conflict. */
  #writing: Promise<unknown> = Promise.resolve();
  #liveGateways = new Map<string, number>();
  /** Ready replicas that the newest tick began with. */
  #plannedReady: ReadonlyMap<string, number> = new Map();
  #reloads: Promise<void> = Promise.resolve();
  #cancelSignals = () => {};
  #stopped = false;

  constructor(parts: ControlParts) {
    this.#fleet = parts.fleet;
    this.advise = parts.advise ?? false;
    this.operator = new Operator(parts.store);
    this.store = parts.store;
    this.solver = parts.solver;
    this.analyst = parts.analyst;
    this.clock = parts.clock;
    this.#prober = parts.prober;
    this.logger = parts.logger;
    this.conditions = new ConditionLog(parts.logger);
    this.feed = new Feed(parts.clock);
    this.#loop = new TickLoop(parts.clock, parts.fleet.policy.tickMs, () => this.#tick());
    this.#collector = new Collector({
      fleet: parts.fleet,
      prober: parts.prober,
      clock: parts.clock,
      random: parts.random,
      onChange: (id) => this.#engineChanged(id),
      onScrape: (id, result, message) => {
        this.metrics.scraped(id, result);
        if (result !== "ok") {
          this.conditions.begins(`metrics of ${id}`, result, `metrics can't be read: ${message}`, { engine: id });
          return;
        }
        this.conditions.ends(`metrics of ${id}`, "metrics are read again");
        this.#tellMissing(id);
      },
    });
  }

  /** Reads what is stored, asks the engines once, then ticks. @throws GuidevaneError `store_unreadable` */
  async start(): Promise<void> {
    await this.operator.load();
    const stored = await this.store.get();
    if (stored !== null) await this.published.replace(stored);
    await this.#collector.start();
    if (this.#stopped) return;
    this.#loop.start();
    this.#sendSignals();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSignals();
    this.#collector.stop();
    this.feed.close();
    await Promise.all([this.solver.close(), this.analyst.close(), this.#prober.close()]);
    await this.#loop.stop();
    await this.operator.settled();
  }

  get fleet(): Fleet {
    return this.#fleet;
  }

  /** Takes another fleet file, whole; the next tick plans with it. What was learned of engines that stay, stays. */
  async reload(fleet: Fleet): Promise<void> {
    const reload = this.#reloads.then(async () => {
      const commit = await this.#collector.prepare(fleet);
      if (this.#stopped) return;
      this.#fleet = fleet;
      commit();
      this.#loop.pace(fleet.policy.tickMs);
      this.feed.send(this.enginesEvent());
      this.#sendSignalsOnce();
      this.#loop.hurry();
    });
    this.#reloads = reload.catch(() => {});
    await reload;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Every engine of the fleet as it is known now. */
  engineStates(): ReadonlyMap<string, EngineState> {
    const nowMs = this.clock.nowMs();
    return engineStates(this.fleet, {
      operator: this.operator.state,
      observation: (id) => this.#collector.of(id)!,
      evidence: (id) => this.levels.evidence(id, nowMs),
    });
  }

  /** Takes a gateway's report in; gives the live gateways of its cluster. */
  report(report: DemandReport): number {
    const nowMs = this.clock.nowMs();
    const wasSilent = this.levels.live(report.cluster, nowMs) === 0;
    const { deathsChanged } = this.levels.add(report, nowMs);
    const live = this.levels.live(report.cluster, nowMs);
    // A cluster that was silent for long is planned for the floor, and loads those weights as soon as it is back.
    if (wasSilent && live > 0) this.#loop.hurry();
    if (this.#liveGateways.get(report.cluster) !== live) {
      this.#liveGateways.set(report.cluster, live);
      this.feed.send({ event: "gateways", data: { gateways: live } }, report.cluster);
    }
    if (deathsChanged) this.#hurryIfLost();
    return live;
  }

  /** Runs one publication after another. */
  writing<Result>(write: () => Promise<Result>): Promise<Result> {
    const result = this.#writing.then(write);
    this.#writing = result.catch(() => {});
    return result;
  }

  /** Why a tick may not publish; null when it may. */
  get heldBecause(): HeldBecause | null {
    if (this.advise) return "advise";
    return this.operator.frozen ? "frozen" : null;
  }

  /** A tick soon: something happened that should not wait for the next one. */
  hurry(): void {
    this.#loop.hurry();
  }

  /** What a reader of the feed must know when it comes. */
  presentState(cluster: string): FeedEvent[] {
    const events: FeedEvent[] = [];
    const stored = this.published.current;
    if (stored !== null) events.push({ event: "snapshot", data: { tag: snapshotTag(stored) } });
    events.push(this.#signalsEvent(), this.enginesEvent());
    events.push({ event: "gateways", data: { gateways: this.levels.live(cluster, this.clock.nowMs()) } });
    return events;
  }

  async #tick(): Promise<void> {
    if (this.#stopped) return;
    const states = this.engineStates();
    this.#plannedReady = new Map([...states].map(([id, { readyReplicas }]) => [id, readyReplicas]));
    tellFailOpen(this, states);
    try {
      tellTick(this, await tick(this));
    } catch (error) {
      // Every failure that a tick expects is a result; what is thrown is a fault of this program, and must not end it.
      this.metrics.publishTotal.inc({ result: "failed" });
      this.conditions.begins("tick", "thrown", `the tick failed: ${String(error)}`, { err: error });
    }
  }

  /** A series that is not on the page is an alarm: it may not pass for a zero. */
  #tellMissing(id: string): void {
    // An engine of a fleet file that is not the present one yet is scraped and not known.
    const signals = this.#collector.of(id)?.signals;
    if (signals === undefined) return;
    const missing = SIGNAL_NAMES.filter((name) => signals[name].state === "missing").join(", ");
    if (missing === "") this.conditions.ends(`signals of ${id}`, "all signals are there again");
    else this.conditions.begins(`signals of ${id}`, missing, `the metrics page lacks ${missing}`, { engine: id });
  }

  #engineChanged(id: string): void {
    const { health, healthReason, readyReplicas, observation } = this.engineStates().get(id)!;
    const told = `${health} ${readyReplicas}`;
    if (this.#toldOf.get(id) !== told)
      this.logger.info({ engine: id, health, healthReason, readyReplicas }, `engine ${id} is ${health}`);
    this.#toldOf.set(id, told);
    this.feed.send({ event: "signals", data: { engines: { [id]: observation.signals } } });
    this.#hurryIfLost();
  }

  /** An engine lost or back since the last plan should not wait for the next tick. */
  #hurryIfLost(): void {
    for (const { id, readyReplicas } of this.engineStates().values()) {
      const planned = this.#plannedReady.get(id);
      if (planned === undefined || planned === readyReplicas) continue;
      this.#loop.hurry();
      return;
    }
  }

  #sendSignalsOnce(): void {
    this.feed.send(this.#signalsEvent());
    this.metrics.signals(this.fleet, this.engineStates());
  }

  #sendSignals(): void {
    this.#sendSignalsOnce();
    this.#cancelSignals = this.clock.after(SIGNALS_FEED_MS, () => this.#sendSignals());
  }

  #signalsEvent(): FeedEvent {
    const engines = [...this.engineStates()].map(([id, { observation }]) => [id, observation.signals]);
    return { event: "signals", data: { engines: Object.fromEntries(engines) } };
  }

  /** Engines that are not simply active, by the operator or by the fleet file. */
  enginesEvent(): FeedEvent {
    const engines = [...this.fleet.engines.values()]
      .map((engine) => [engine.id, adminStateOf(engine, this.operator.state)] as const)
      .filter(([, state]) => state !== "active");
    return { event: "engines", data: { engines: Object.fromEntries(engines) } };
  }
}

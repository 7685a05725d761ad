import type { AdminState, Clock, ClusterSnapshot, EngineSignals, HealthState, SnapshotEngine } from "@guidevane/core";
import { EngineHealth, type HealthFacts } from "@guidevane/guard";
import type { AttemptVerdict } from "./attempt-result.ts";
import type { EngineCounts } from "./demand.ts";
import { COOLING_WAITED_MS } from "./state-word.ts";

/** What the process knows of one engine while any snapshot of it is in use. */
export interface EngineState {
  readonly id: string;
  readonly spec: SnapshotEngine;
  readonly health: EngineHealth;
}

export interface EngineStatesOptions {
  readonly clock: Clock;
  /** Told whenever an engine's facts may have changed. */
  readonly onFacts: (engine: string, facts: HealthFacts, coolingMs: number) => void;
  /** What penalties leave of an engine's share, 0..1. */
  readonly penaltyOf: (engine: string) => number;
  /** Longest time that an engine is left alone on its own word. */
  readonly retryAfterCapMs: () => number;
  /** Told once per change of an engine's health. */
  readonly onHealth: (engine: string, facts: HealthFacts, before: HealthState) => void;
  /** Its port refuses: answers of it that are under way will not go on. */
  readonly onDied: (engine: string) => void;
}

interface Known extends EngineState {
  spec: SnapshotEngine;
  /** Whether the newest snapshot has it. */
  present: boolean;
  shown: HealthState;
  attempts: number;
  faults: number;
  rttMs: number | null;
  /** Until when it asked to be left alone, by the clock. */
  coolUntilMs: number;
  /** A timer waits for what the cooling says next. */
  isCoolingWatched: boolean;
  signals: { readonly values: EngineSignals; readonly atMs: number } | null;
  /** Its replicas are known from a signal that is not too old. */
  isCounted: boolean;
  /** Its factor rose when it was last looked at. */
  isRising: boolean;
}

/**
 * The engines of the snapshot in use as the process knows them: their health, what their signals and their attempts said.
 * One per process, on its main thread; request threads tell it of each attempt and read what it writes in shared memory.
 */
export class EngineStates {
  readonly #options: EngineStatesOptions;
  readonly #byId = new Map<string, Known>();
  /** Those that take nothing. */
  readonly #out = new Set<string>();
  #admin: Readonly<Record<string, AdminState>> = {};

  constructor(options: EngineStatesOptions) {
    this.#options = options;
  }

  /** Also one that the newest snapshot has no more, while a request by an older one may use it. */
  get(id: string): EngineState | undefined {
    return this.#byId.get(id);
  }

  /** Those of the newest snapshot. */
  all(): EngineState[] {
    return [...this.#byId.values()].filter(({ present }) => present);
  }

  /** Takes over what a snapshot says of an engine. What was learned of one that is known stays. */
  adopt(id: string, spec: SnapshotEngine): void {
    const known = this.#byId.get(id);
    if (known === undefined) this.#byId.set(id, this.#create(id, spec));
    else this.#update(known, spec);
    this.#changed(this.#byId.get(id)!);
  }

  /** It is the newest from now on; each of its engines has been taken over. */
  use(snapshot: ClusterSnapshot): void {
    for (const [id, known] of this.#byId) known.present = Object.hasOwn(snapshot.engines, id);
  }

  /** Lets go of engines that no snapshot in use has: requests that began by an older one may still go to them. */
  sweep(inUse: Iterable<ClusterSnapshot>): void {
    const snapshots = [...inUse];
    for (const id of this.#byId.keys())
      if (!snapshots.some(({ engines }) => Object.hasOwn(engines, id))) {
        this.#byId.delete(id);
        this.#out.delete(id);
      }
  }

  /** The operator's words as the feed has them: engines not named are as the snapshot says. */
  setAdmin(states: Readonly<Record<string, AdminState>>): void {
    this.#admin = states;
    for (const known of this.#byId.values()) {
      known.health.setAdmin(Object.hasOwn(states, known.id) ? states[known.id]! : null);
      this.#changed(known);
    }
  }

  setSignals(signals: Readonly<Record<string, EngineSignals>>): void {
    const atMs = this.#options.clock.nowMs();
    for (const [id, values] of Object.entries(signals)) {
      const known = this.#byId.get(id);
      if (known === undefined) continue;
      known.signals = { values, atMs };
      // Only a fresh count says something about now: missing and stale are not zero.
      const ready = values.readyReplicas;
      known.health.setReadyReplicas(ready.state === "fresh" ? ready.value : null);
      known.isCounted = true;
      this.#changed(known);
    }
  }

  /** An attempt is over: what it says about the engine's health, and what is reported of it. */
  ended(id: string, report: AttemptVerdict): void {
    const known = this.#byId.get(id);
    if (known === undefined) return;
    known.attempts += 1;
    if (report.outcome === "fault") known.faults += 1;
    if (report.connectMs !== null) known.rttMs = Math.min(known.rttMs ?? Number.POSITIVE_INFINITY, report.connectMs);
    if (report.failure?.kind === "refused") known.health.refused();
    else if (report.failure === null && report.status !== null && report.status < 500) known.health.answered();
    if (report.outcome === "saturated") this.#cool(known, report.retryAfterMs ?? COOLING_DEFAULT_MS);
    this.#changed(known);
  }

  /** Part of its share that an engine takes now, 0..1; 0 for one that takes nothing, 1 for one that is not known. */
  factorOf(id: string): number {
    const facts = this.#byId.get(id)?.health.facts();
    if (facts === undefined) return 1;
    return takes(facts) ? facts.factor * this.#options.penaltyOf(id) : 0;
  }

  /** Engines that may be sent nothing at all. */
  get out(): ReadonlySet<string> {
    return this.#out;
  }

  /** Whether an engine may be sent anything at all. */
  takes(id: string): boolean {
    const known = this.#byId.get(id);
    return known !== undefined && takes(known.health.facts());
  }

  /** Answers of it that are under way make progress. */
  heard(id: string): void {
    this.#byId.get(id)?.health.heard();
  }

  /** Reads again what time alone changes: the rising factor of a returning engine, a word that grew too old. */
  refresh(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const known of this.#byId.values()) {
      const isStale = known.isCounted && nowMs - known.signals!.atMs > STALE_AFTER_MS;
      if (isStale) {
        known.isCounted = false;
        known.health.setReadyReplicas(null);
      }
      if (isStale || known.isRising) this.#changed(known);
    }
  }

  /** After a probe told the engine's health something, or its penalty changed. */
  reread(id: string): void {
    const known = this.#byId.get(id);
    if (known !== undefined) this.#changed(known);
  }

  /** Counts of each engine since it was last asked for, for the report to the control plane; taken as they are read. */
  *takeDemand(): Generator<EngineCounts> {
    for (const known of this.#byId.values()) {
      const { id, attempts, faults, rttMs, health } = known;
      known.attempts = 0;
      known.faults = 0;
      yield { id, attempts, faults, rttMs, dead: health.facts().health === "dead" };
    }
  }

  /** The signals last heard of an engine, aged to now; null before any. */
  signals(id: string): EngineSignals | null {
    const heard = this.#byId.get(id)?.signals;
    if (heard === undefined || heard === null) return null;
    const waitedMs = this.#options.clock.nowMs() - heard.atMs;
    const age = (name: keyof EngineSignals): EngineSignals[typeof name] => {
      const { value, state, ageMs } = heard.values[name];
      const agedMs = ageMs === null ? null : Math.round(ageMs + waitedMs);
      return { value, ageMs: agedMs, state: state === "fresh" && waitedMs > STALE_AFTER_MS ? "stale" : state };
    };
    return {
      running: age("running"),
      waiting: age("waiting"),
      kvUsage: age("kvUsage"),
      readyReplicas: age("readyReplicas"),
    };
  }

  #create(id: string, spec: SnapshotEngine): Known {
    const health = new EngineHealth(basisOf(spec), this.#options.clock);
    health.setAdmin(this.#admin[id] ?? null);
    return {
      id,
      spec,
      health,
      present: false,
      shown: health.facts().health,
      attempts: 0,
      faults: 0,
      rttMs: null,
      coolUntilMs: Number.NEGATIVE_INFINITY,
      isCoolingWatched: false,
      signals: null,
      isCounted: false,
      isRising: false,
    };
  }

  #update(known: Known, spec: SnapshotEngine): void {
    known.spec = spec;
    known.health.rebase(basisOf(spec));
    known.health.setAdmin(this.#admin[known.id] ?? null);
  }

  /** For so long it is asked only where no other engine can serve. Never shorter than it asked for before. */
  #cool(known: Known, ms: number): void {
    const { clock, retryAfterCapMs } = this.#options;
    known.coolUntilMs = Math.max(known.coolUntilMs, clock.nowMs() + Math.min(ms, retryAfterCapMs()));
    if (!known.isCoolingWatched) this.#watchCooling(known);
  }

  /** The word that routers read is written anew when what it says of the cooling is no longer so. */
  #watchCooling(known: Known): void {
    const leftMs = known.coolUntilMs - this.#options.clock.nowMs();
    known.isCoolingWatched = leftMs > 0;
    if (leftMs <= 0) return;
    this.#options.clock.after(leftMs >= COOLING_WAITED_MS ? leftMs - COOLING_WAITED_MS + 1 : leftMs, () => {
      this.#changed(known);
      this.#watchCooling(known);
    });
  }

  #changed(known: Known): void {
    const facts = known.health.facts();
    known.isRising = known.health.ramping;
    if (takes(facts)) this.#out.delete(known.id);
    else this.#out.add(known.id);
    this.#options.onFacts(known.id, facts, known.coolUntilMs - this.#options.clock.nowMs());
    if (facts.health === known.shown) return;
    const before = known.shown;
    known.shown = facts.health;
    // A probe that fails says less about the answers under way.
    if (facts.health === "dead" && facts.out) this.#options.onDied(known.id);
    this.#options.onHealth(known.id, facts, before);
  }
}

/** What an engine asks for that is saturated and says no more. */
const COOLING_DEFAULT_MS = 1000;

/** The feed tells signals every few seconds; unheard for this long they say nothing about now. */
const STALE_AFTER_MS = 15_000;

function takes({ out, outByProbe, draining }: HealthFacts): boolean {
  return !out && !outByProbe && !draining;
}

function basisOf(spec: SnapshotEngine): ConstructorParameters<typeof EngineHealth>[0] {
  return {
    replicas: spec.replicas,
    plannedReady: spec.plannedReady,
    adminState: spec.adminState,
    probePath: spec.health.path,
    probePathIsDefault: spec.health.pathIsDefault,
    probeIntervalMs: spec.health.intervalMs,
  };
}

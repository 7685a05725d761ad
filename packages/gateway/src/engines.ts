import type { AdminState, Clock, ClusterSnapshot, EngineSignals, HealthState, SnapshotEngine } from "@guidevane/core";
import { EngineHealth, type HealthFacts } from "@guidevane/guard";
import type { RunningAttempt } from "./attempt.ts";
import type { AttemptReport } from "./attempt-result.ts";
import type { EngineCredentials } from "./credentials.ts";
import type { EngineDemand } from "./demand.ts";
import type { EngineClient } from "./engine-client.ts";

/** What the gateway holds of one engine while any snapshot of it is in use. */
export interface Engine {
  readonly id: string;
  readonly spec: SnapshotEngine;
  readonly url: URL;
  /** Put before a request's path; empty for most. */
  readonly pathPrefix: string;
  readonly client: EngineClient;
  readonly credentials: EngineCredentials;
  readonly health: EngineHealth;
}

export interface EnginesOptions {
  readonly clock: Clock;
  readonly credentials: (engine: string) => EngineCredentials;
  readonly createClient: (origin: string) => EngineClient;
  /** Told whenever an engine's facts may have changed. */
  readonly onFacts: (engine: string, facts: HealthFacts) => void;
  /** Told once per change of an engine's health. */
  readonly onHealth: (engine: string, facts: HealthFacts, before: HealthState) => void;
}

interface Known extends Engine {
  spec: SnapshotEngine;
  url: URL;
  pathPrefix: string;
  client: EngineClient;
  credentials: EngineCredentials;
  /** Whether the newest snapshot has it. */
  present: boolean;
  shown: HealthState;
  attempts: number;
  faults: number;
  readonly running: Set<RunningAttempt>;
  rttMs: number | null;
  signals: { readonly values: EngineSignals; readonly atMs: number } | null;
}

/** The engines of the snapshot in use: their connections, their health and what was seen of them. */
export class Engines {
  readonly #options: EnginesOptions;
  readonly #byId = new Map<string, Known>();
  #credentials: EnginesOptions["credentials"];
  #admin: Readonly<Record<string, AdminState>> = {};

  constructor(options: EnginesOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /** Also one that the newest snapshot has no more, while a request by an older one may use it. */
  get(id: string): Engine | undefined {
    return this.#byId.get(id);
  }

  /** Those of the newest snapshot. */
  all(): Engine[] {
    return [...this.#byId.values()].filter(({ present }) => present);
  }

  /** Takes over a snapshot's engines. What was learned of those that stay stays. */
  adopt(snapshot: ClusterSnapshot): void {
    for (const [id, spec] of Object.entries(snapshot.engines)) {
      const known = this.#byId.get(id);
      if (known === undefined) this.#byId.set(id, this.#create(id, spec));
      else this.#update(known, spec);
      this.#changed(this.#byId.get(id)!);
    }
    for (const [id, known] of this.#byId) known.present = Object.hasOwn(snapshot.engines, id);
  }

  /** Lets go of engines that no snapshot in use has: requests that began by an older one may still go to them. */
  sweep(inUse: Iterable<ClusterSnapshot>): void {
    const ids = new Set([...inUse].flatMap((snapshot) => Object.keys(snapshot.engines)));
    for (const [id, known] of this.#byId) {
      if (ids.has(id)) continue;
      known.client.close();
      this.#byId.delete(id);
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

  /** From the next request on. */
  setCredentials(credentials: (engine: string) => EngineCredentials): void {
    this.#credentials = credentials;
    for (const known of this.#byId.values()) known.credentials = credentials(known.id);
  }

  setSignals(signals: Readonly<Record<string, EngineSignals>>): void {
    const atMs = this.#options.clock.nowMs();
    for (const known of this.#byId.values()) {
      const values = Object.hasOwn(signals, known.id) ? signals[known.id] : undefined;
      if (values === undefined) continue;
      known.signals = { values, atMs };
      // Only a fresh count says something about now: missing and stale are not zero.
      const ready = values.readyReplicas;
      known.health.setReadyReplicas(ready.state === "fresh" ? ready.value : null);
      this.#changed(known);
    }
  }

  began(id: string, running: RunningAttempt): void {
    this.#byId.get(id)?.running.add(running);
  }

  /** An attempt is over: what it says about the engine's health, and what is reported of it. */
  ended(id: string, running: RunningAttempt, report: AttemptReport): void {
    const known = this.#byId.get(id);
    if (known === undefined) return;
    known.running.delete(running);
    known.attempts += 1;
    if (report.outcome === "fault") known.faults += 1;
    if (report.connectMs !== null) known.rttMs = Math.min(known.rttMs ?? Number.POSITIVE_INFINITY, report.connectMs);
    if (report.failure?.kind === "refused") known.health.refused();
    else if (report.failure === null && report.status !== null && report.status < 500) known.health.answered();
    this.#changed(known);
  }

  /** Reads again what time alone changes: the rising factor of a returning engine. */
  refresh(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const known of this.#byId.values()) {
      if (known.signals !== null && nowMs - known.signals.atMs > STALE_AFTER_MS) known.health.setReadyReplicas(null);
      this.#changed(known);
    }
  }

  /** After a probe told the engine's health something. */
  probed(id: string): void {
    const known = this.#byId.get(id);
    if (known !== undefined) this.#changed(known);
  }

  /** Counts since the last call, for the report to the control plane. */
  takeDemand(): EngineDemand[] {
    return [...this.#byId.values()].map((known) => {
      const { id, attempts, faults, rttMs, health } = known;
      known.attempts = 0;
      known.faults = 0;
      return { id, attempts, faults, rttMs, dead: health.facts().health === "dead" };
    });
  }

  inFlight(id: string): number {
    return this.#byId.get(id)?.running.size ?? 0;
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

  close(): void {
    for (const known of this.#byId.values()) known.client.close();
  }

  #create(id: string, spec: SnapshotEngine): Known {
    const { clock, createClient } = this.#options;
    const health = new EngineHealth(basisOf(spec), clock);
    health.setAdmin(this.#admin[id] ?? null);
    return {
      id,
      spec,
      ...placeOf(spec),
      client: createClient(new URL(spec.url).origin),
      credentials: this.#credentials(id),
      health,
      present: true,
      shown: health.facts().health,
      attempts: 0,
      faults: 0,
      running: new Set(),
      rttMs: null,
      signals: null,
    };
  }

  #update(known: Known, spec: SnapshotEngine): void {
    if (new URL(spec.url).origin !== known.url.origin) {
      known.client.close();
      known.client = this.#options.createClient(new URL(spec.url).origin);
    }
    known.spec = spec;
    Object.assign(known, placeOf(spec));
    known.health.rebase(basisOf(spec));
    known.health.setAdmin(this.#admin[known.id] ?? null);
  }

  #changed(known: Known): void {
    const facts = known.health.facts();
    this.#options.onFacts(known.id, facts);
    if (facts.health === known.shown) return;
    const before = known.shown;
    known.shown = facts.health;
    // Refused by its port: a probe that fails says less about the answers under way.
    if (facts.health === "dead" && facts.out) for (const each of known.running) each.engineDied();
    this.#options.onHealth(known.id, facts, before);
  }
}

/** The feed tells signals every few seconds; unheard for this long they say nothing about now. */
const STALE_AFTER_MS = 15_000;

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

function placeOf(spec: SnapshotEngine): { url: URL; pathPrefix: string } {
  const url = new URL(spec.url);
  // People write an engine's address with and without the `/v1` that every request path brings.
  const pathPrefix = url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
  return { url, pathPrefix };
}

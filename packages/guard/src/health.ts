import type { AdminState, Clock, HealthState } from "@guidevane/core";

/** Probes that must fail, or succeed, one after another before they are believed. */
const PROBES_BELIEVED = 2;

/** A busy engine answers its probe late, so lateness must be seen more often than a plain "no" before it counts. */
const LATE_PROBES_BELIEVED = 3;
/** Answers under way that made progress this lately outweigh a late probe. */
const HEARD_MS = 3000;

/** A returning engine gets its share back over this long: a cold cache meets a trickle, not its whole load. */
export const RAMP_MS = 10_000;

/** Share of the ramp that a returning engine starts with, so that traffic shows at once that it is back. */
const RAMP_START = 0.1;

/** A dead engine is asked at least this often, and sooner after its first good probe: traffic must be back within 5 s. */
const DEAD_PROBE_MS = 1000;
const CONFIRM_MS = 500;

/** Answers that a server gives to a path that it does not have. */
const NO_SUCH_PROBE: ReadonlySet<number> = new Set([401, 404, 405]);

/** What the snapshot and the fleet file say of an engine. */
export interface EngineBasis {
  readonly replicas: number;
  /** Ready replicas that the weights were planned with. */
  readonly plannedReady: number;
  readonly adminState: AdminState;
  /** null = no HTTP probe; an accepted connection is then the only sign of life. */
  readonly probePath: string | null;
  readonly probePathIsDefault: boolean;
  readonly probeIntervalMs: number;
}

/**
 * How a probe went. `connected` is all that a probe without a path can find; `late`: nothing came in time; `failed`: a reset
 * or the like.
 */
export type ProbeResult =
  | { readonly kind: "answer"; readonly status: number }
  | { readonly kind: "connected" }
  | { readonly kind: "refused" }
  | { readonly kind: "late"; readonly why: string }
  | { readonly kind: "failed"; readonly why: string };

/** What a router must know of an engine, and what a person wants to. */
export interface HealthFacts {
  /** Takes nothing: refused connections, no ready replica, taken out by the operator. */
  readonly out: boolean;
  /** Takes nothing unless every other candidate is out as well: only probes speak against it. */
  readonly outByProbe: boolean;
  readonly draining: boolean;
  /** 0..1: what its share is multiplied by, from ready replicas and the ramp after a return. */
  readonly factor: number;
  readonly health: HealthState;
  readonly reason: string;
  /** When the health state last changed, by the clock's `nowMs`. */
  readonly sinceMs: number;
}

type Verdict = "unknown" | "alive" | "refused" | "probe-failed";

/**
 * Whether one engine may take traffic, from what this gateway saw itself (attempts and probes) and what the control
 * plane said (ready replicas, operator). Pure: it keeps time by the clock and does no I/O.
 */
export class EngineHealth {
  readonly #clock: Clock;
  #basis: EngineBasis;
  #admin: AdminState;
  #readyReplicas: number | null = null;
  #verdict: Verdict = "unknown";
  #why = "not asked yet";
  #refusals = 0;
  #badProbes = 0;
  #goodProbes = 0;
  #lateProbes = 0;
  #lastHeardMs: number | null = null;
  /** 401, 404 or 405 came from a default path: this engine has no such probe. */
  #probeAbsent = false;
  #rampFromMs: number | null = null;
  #lastGoodMs: number | null = null;
  #sinceMs: number;
  #shown: HealthState = "unknown";

  constructor(basis: EngineBasis, clock: Clock) {
    this.#basis = basis;
    this.#admin = basis.adminState;
    this.#clock = clock;
    this.#sinceMs = clock.nowMs();
    this.#noteChange();
  }

  /** A newer snapshot's word on the engine. What was learned of its health stays. */
  rebase(basis: EngineBasis): void {
    if (basis.probePath !== this.#basis.probePath) this.#probeAbsent = false;
    this.#basis = basis;
    this.#noteChange();
  }

  /** The operator's word, which overrules the snapshot's; null = nothing said beyond it. */
  setAdmin(state: AdminState | null): void {
    this.#admin = state ?? this.#basis.adminState;
    this.#noteChange();
  }

  /** Ready replicas as last reported; null = not known, which is not zero. */
  setReadyReplicas(count: number | null): void {
    // Also where its number is no longer known: an engine that slept says nothing of replicas when it is awake.
    if (this.#readyReplicas === 0 && count !== 0) this.#rampFromMs = this.#clock.nowMs();
    this.#readyReplicas = count;
    this.#noteChange();
  }

  /** A connection was refused, by a request's attempt or by a probe. */
  refused(): void {
    this.#refusals += 1;
    this.#goodProbes = 0;
    // With several replicas behind one address a single refusal is one replica's.
    if (this.#basis.replicas <= 1 || this.#refusals >= 2) this.#judge("refused", "connection refused");
  }

  /** An attempt got an answer that shows the engine at work. */
  answered(): void {
    this.heard();
    this.#badProbes = 0;
    this.#lastGoodMs = this.#clock.nowMs();
    // An answer may come over a connection older than the refusal: only a new connection shows that the port is open.
    if (this.#verdict === "refused") return;
    if (this.#verdict === "probe-failed") this.#goodProbe();
    else this.#judge("alive", "answers");
  }

  /** An answer under way made progress: no new word on new connections, but its core is at work. */
  heard(): void {
    this.#lateProbes = 0;
    this.#lastHeardMs = this.#clock.nowMs();
  }

  probed(result: ProbeResult): void {
    if (result.kind === "refused") this.refused();
    else if (result.kind === "late") this.#lateProbe(result.why);
    else if (result.kind === "failed") this.#badProbe(result.why);
    else if (result.kind === "connected") this.#goodProbe();
    else if (result.status >= 200 && result.status < 300) this.#goodProbe();
    else if (this.#basis.probePathIsDefault && NO_SUCH_PROBE.has(result.status)) {
      // Nobody configured this path, so its absence says nothing but that the port is open.
      this.#probeAbsent = true;
      this.#goodProbe();
    } else this.#badProbe(`http ${result.status}`);
  }

  facts(): HealthFacts {
    const admin = this.#admin;
    const noReplica = this.#readyReplicas === 0;
    const health = this.#health();
    return {
      out: admin === "out" || noReplica || this.#verdict === "refused",
      outByProbe: this.#verdict === "probe-failed",
      draining: admin === "draining",
      factor: this.#factor(),
      health,
      reason: health === "out" || health === "draining" ? "operator" : noReplica ? "no ready replica" : this.#why,
      sinceMs: this.#sinceMs,
    };
  }

  /** Whether the factor still rises: the facts must then be read again as time passes. */
  get ramping(): boolean {
    return this.#rampFromMs !== null && this.#clock.nowMs() - this.#rampFromMs < RAMP_MS;
  }

  /** How the next probe must be made; null = the engine is out by the operator's word and nobody asks. */
  get probe(): { readonly path: string | null } | null {
    if (this.#admin === "out") return null;
    const path = this.#probeAbsent ? null : this.#basis.probePath;
    // Without a path only a dead engine is knocked at: there is nothing else to learn from a connection.
    return path === null && !this.#isDead() && this.#verdict !== "unknown" ? null : { path };
  }

  /** Wait before the next probe, ms; `draw` in [0, 1) spreads gateways by ±10 %. */
  nextProbeMs(draw: number): number {
    if (this.#isDead() && this.#goodProbes > 0) return CONFIRM_MS;
    const { probeIntervalMs } = this.#basis;
    return (this.#isDead() ? Math.min(DEAD_PROBE_MS, probeIntervalMs) : probeIntervalMs) * (0.9 + 0.2 * draw);
  }

  /** Whether traffic has shown the engine healthy within one probe interval, and nothing has spoken against it since. */
  get freshlySeen(): boolean {
    if (this.#isDead() || this.#lastGoodMs === null) return false;
    return this.#clock.nowMs() - this.#lastGoodMs < this.#basis.probeIntervalMs;
  }

  #isDead(): boolean {
    return this.#verdict === "refused" || this.#verdict === "probe-failed";
  }

  #goodProbe(): void {
    this.#refusals = 0;
    this.#badProbes = 0;
    this.#lateProbes = 0;
    if (!this.#isDead()) {
      this.#judge("alive", "probe answers");
      return;
    }
    this.#goodProbes += 1;
    if (this.#goodProbes < PROBES_BELIEVED) return;
    this.#rampFromMs = this.#clock.nowMs();
    this.#judge("alive", "back");
  }

  #lateProbe(why: string): void {
    this.#goodProbes = 0;
    if (this.#lastHeardMs !== null && this.#clock.nowMs() - this.#lastHeardMs < HEARD_MS) return;
    this.#lateProbes += 1;
    if (this.#lateProbes >= LATE_PROBES_BELIEVED && this.#verdict !== "refused") this.#judge("probe-failed", why);
  }

  #badProbe(why: string): void {
    this.#goodProbes = 0;
    this.#badProbes += 1;
    if (this.#badProbes >= PROBES_BELIEVED && this.#verdict !== "refused") this.#judge("probe-failed", why);
  }

  #judge(verdict: Verdict, why: string): void {
    if (verdict === "alive") {
      this.#goodProbes = 0;
      this.#refusals = 0;
    }
    this.#verdict = verdict;
    this.#why = why;
    this.#noteChange();
  }

  #factor(): number {
    const { plannedReady } = this.#basis;
    const ready = this.#readyReplicas;
    const present = ready === null || plannedReady === 0 ? 1 : Math.min(1, ready / plannedReady);
    if (this.#rampFromMs === null) return present;
    const risen = (this.#clock.nowMs() - this.#rampFromMs) / RAMP_MS;
    return present * Math.min(1, RAMP_START + (1 - RAMP_START) * risen);
  }

  #health(): HealthState {
    if (this.#admin === "out") return "out";
    if (this.#isDead()) return "dead";
    if (this.#admin === "draining") return "draining";
    if (this.#readyReplicas === 0) return "not-ready";
    return this.#verdict === "unknown" ? "unknown" : "ready";
  }

  #noteChange(): void {
    const health = this.#health();
    if (health === this.#shown) return;
    this.#shown = health;
    this.#sinceMs = this.#clock.nowMs();
  }
}

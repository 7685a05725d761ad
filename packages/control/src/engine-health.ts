import type { HealthState } from "@guidevane/core";
import type { ProbeOutcome } from "./engine-probe.ts";

/** Bad answers, and good ones after a death, that are believed only when this many come in a row. */
const IN_A_ROW = 2;

/** A busy engine answers its probe late, so lateness must be seen more often than a plain "no" before it counts. */
const LATE_IN_A_ROW = 3;

const NO_SUCH_PATH = new Set([401, 404, 405]);

/** What the control plane's own probes say of one engine. Readiness and the operator's word come on top. */
export interface ProbedHealth {
  readonly health: Extract<HealthState, "ready" | "unknown" | "dead">;
  readonly reason: string;
  /** When it became so. */
  readonly sinceMs: number;
}

export interface HealthRules {
  /** With more than one replica behind the address, one refusal may be one replica's. */
  readonly replicas: number;
  /** A default path that is not there means "no probe", not "dead". */
  readonly pathIsDefault: boolean;
}

/** Health of one engine from its probes: dead at once when it refuses, back after two good answers. */
export class EngineHealth {
  #rules: HealthRules;
  #present: ProbedHealth;
  #kind = "";
  #inARow = 0;

  constructor(rules: HealthRules, nowMs: number) {
    this.#rules = rules;
    this.#present = { health: "unknown", reason: "not probed yet", sinceMs: nowMs };
  }

  get present(): ProbedHealth {
    return this.#present;
  }

  /** One more answer like the last changes the verdict, so it should be asked for soon: a return, or a refusal. */
  get undecided(): boolean {
    return this.#present.health === "dead" ? this.#kind === "good" : this.#kind === "refused";
  }

  /** Takes a probe's outcome in; true when the state changed. */
  observe(outcome: ProbeOutcome, nowMs: number): boolean {
    const kind = this.#classify(outcome);
    this.#inARow = kind === this.#kind ? this.#inARow + 1 : 1;
    this.#kind = kind;
    const reason = reasonOf(outcome);
    switch (kind) {
      case "good":
        if (this.#present.health === "dead" && this.#inARow < IN_A_ROW) return false;
        return this.#become("ready", reason, nowMs);
      case "absent":
        return this.#become("unknown", `no probe: ${reason}`, nowMs);
      case "refused":
        if (this.#rules.replicas > 1 && this.#inARow < IN_A_ROW) return false;
        return this.#become("dead", reason, nowMs);
      case "late":
        if (this.#inARow < LATE_IN_A_ROW) return false;
        return this.#become("dead", reason, nowMs);
      case "bad":
        if (this.#inARow < IN_A_ROW) return false;
        return this.#become("dead", reason, nowMs);
    }
  }

  #classify(outcome: ProbeOutcome): "good" | "absent" | "refused" | "late" | "bad" {
    if (outcome.kind === "refused") return "refused";
    if (outcome.kind === "timeout") return "late";
    if (outcome.kind !== "answer") return "bad";
    if (outcome.status >= 200 && outcome.status < 300) return "good";
    return this.#rules.pathIsDefault && NO_SUCH_PATH.has(outcome.status) ? "absent" : "bad";
  }

  #become(health: ProbedHealth["health"], reason: string, nowMs: number): boolean {
    const changed = this.#present.health !== health;
    if (changed || this.#present.reason !== reason)
      this.#present = { health, reason, sinceMs: changed ? nowMs : this.#present.sinceMs };
    return changed;
  }
}

function reasonOf(outcome: ProbeOutcome): string {
  return outcome.kind === "answer" ? `http ${outcome.status}` : outcome.message;
}

import type { ClusterSnapshot, SnapshotEngine } from "@guidevane/core";
import {
  type ExpectedTimes,
  expectedTimes,
  Penalties,
  type PenaltyEvidence,
  type PenaltyFleet,
  type PenaltyVerdict,
  PromptLengths,
  penaltyFleet,
} from "@guidevane/guard";
import type { AttemptVerdict } from "./attempt-result.ts";
import type { EngineDemand } from "./demand.ts";
import type { Logger } from "./logger.ts";

/** An attempt as its thread tells of it. */
export interface AttemptNews {
  readonly engine: string;
  readonly requestClass: string;
  /** Estimate; null = the answer is no stream, so that its first token can't be told from its last. */
  readonly promptTokens: number | null;
}

export interface GuardPenaltiesOptions {
  readonly nowMs: () => number;
  /** How many threads tell of attempts. */
  readonly threads: number;
  readonly snapshot: () => ClusterSnapshot;
  /** Whether an engine takes traffic by its health. */
  readonly takes: (engine: string) => boolean;
  /** All engines that take none. */
  readonly out: () => Iterable<string>;
  /** An engine's load beyond the plan by now, work units/s. */
  readonly risenWps: (engine: string) => number;
  /** An engine's verdict is another one than before. */
  readonly onVerdict: (engine: string) => void;
  /** Told once per change of what speaks against an engine: kind and state. */
  readonly onEvidence: (engine: string, evidence: PenaltyEvidence | null) => void;
}

/** The penalties of one process: told by its threads of every attempt, once each; judged on its main thread. */
export class GuardPenalties {
  readonly #options: GuardPenaltiesOptions;
  readonly #penalties: Penalties;
  readonly #prompts = new PromptLengths();
  readonly #shown = new Map<string, string>();
  /** Read from a profile once for each snapshot. */
  readonly #times = new WeakMap<SnapshotEngine, ExpectedTimes | null>();
  #fleet: { readonly of: ClusterSnapshot; readonly fleet: PenaltyFleet } | null = null;

  constructor(options: GuardPenaltiesOptions) {
    this.#options = options;
    this.#penalties = new Penalties(options.nowMs());
  }

  /** @param attempt counted by its thread */
  began(thread: number, attempt: number, { engine, requestClass, promptTokens }: AttemptNews): void {
    const spec = engineIn(this.#options.snapshot(), engine);
    const expected = spec === undefined ? null : this.#expected(spec);
    if (promptTokens !== null) this.#prompts.add(engine, promptTokens);
    const ttftMs =
      expected === null || promptTokens === null ? null : expected.ttftMs(promptTokens, this.#prompts.met(engine));
    const begun = { engine, requestClass, ttftMs, tbotMs: expected?.tbotMs ?? null };
    if (this.#penalties.began(this.#name(thread, attempt), begun, this.#options.nowMs()))
      this.#options.onVerdict(engine);
  }

  firstToken(thread: number, attempt: number, ttftMs: number): void {
    this.#penalties.firstToken(this.#name(thread, attempt), ttftMs);
  }

  ended(thread: number, attempt: number, { outcome, answer }: Pick<AttemptVerdict, "outcome" | "answer">): void {
    this.#penalties.ended(this.#name(thread, attempt), outcome, answer?.tbotMs ?? null);
  }

  /** A thread died, and nobody will tell how its attempts ended. */
  threadDied(thread: number): void {
    this.#penalties.forget((name) => name % this.#options.threads === thread);
  }

  /** Draws the conclusions from what was told since the last time. */
  tick(): void {
    const { snapshot, nowMs, takes, out, risenWps, onVerdict, onEvidence } = this.#options;
    const now = snapshot();
    if (this.#fleet?.of !== now) {
      this.#fleet = { of: now, fleet: penaltyFleet(now, takes, risenWps, out) };
      this.#prompts.keep(now.engines);
    }
    for (const engine of this.#penalties.tick(this.#fleet.fleet, nowMs())) {
      onVerdict(engine);
      const { evidence } = this.verdict(engine);
      const shown = evidence === null ? "" : `${evidence.kind} ${evidence.state}`;
      if (shown === (this.#shown.get(engine) ?? "")) continue;
      this.#shown.set(engine, shown);
      onEvidence(engine, evidence);
    }
  }

  verdict(engine: string): PenaltyVerdict {
    return this.#penalties.verdict(engine);
  }

  /** What is left of an engine's share just now: all of it while a request is wanted that shows how it is. */
  factor(engine: string): number {
    const { factor, wantsRequest } = this.verdict(engine);
    return wantsRequest ? 1 : factor;
  }

  /** What the control plane is told of an engine. */
  reported(engine: string): Pick<EngineDemand, "failFactor" | "slowFactor" | "ttftRatio"> {
    const { failFactor, slowFactor } = this.verdict(engine);
    return { failFactor, slowFactor, ttftRatio: this.#penalties.ttftRatio(engine) };
  }

  #expected(spec: SnapshotEngine): ExpectedTimes | null {
    let times = this.#times.get(spec);
    if (times === undefined) {
      times = expectedTimes(spec);
      this.#times.set(spec, times);
    }
    return times;
  }

  #name(thread: number, attempt: number): number {
    return attempt * this.#options.threads + thread;
  }
}

/** A line of the log for each change of what speaks against an engine. */
export function tellEvidence(log: Logger, engine: string, evidence: PenaltyEvidence | null): void {
  if (evidence === null) log.info({ engine }, "nothing speaks against this engine any more");
  else if (evidence.state === "capped" && evidence.kind === "slow") log.info({ engine, ...evidence }, SLOW_CAPPED);
  else if (evidence.state === "capped") log.warn({ engine, ...evidence }, FAILING_CAPPED);
  else if (evidence.state === "penalised") log.warn({ engine, ...evidence }, "engine is penalised");
  else log.info({ engine, ...evidence }, `engine is ${evidence.state}`);
}

/** Also what more load than was planned for looks like, as right after a drain: nothing that a person need look at. */
const SLOW_CAPPED =
  "engine answers slowly and keeps its share: the others have no room for more by the limits of penalties";
const FAILING_CAPPED =
  "engine fails and keeps its share: there is no other, or penalties take as much of the traffic already as they may";

function engineIn({ engines }: ClusterSnapshot, id: string): SnapshotEngine | undefined {
  return Object.hasOwn(engines, id) ? engines[id] : undefined;
}

import type { Clock, ClusterSnapshot, FeedEvent, Fleet, Random } from "@guidevane/core";
import { type PenaltyVerdict, RetryKeeper, type RetryRows } from "@guidevane/guard";
import { type SlotRegistry, setEngine } from "@guidevane/selector";
import type { EngineTlsSecrets } from "./credentials.ts";
import type { EngineDemand } from "./demand.ts";
import { EngineStates } from "./engine-states.ts";
import { GuardPenalties, tellEvidence } from "./guard-penalties.ts";
import type { Logger } from "./logger.ts";
import { ENGINES_A_TURN, inTurns, nextTurn, partsInTurns } from "./loop-turns.ts";
import type { Probe } from "./probe.ts";
import { Prober } from "./prober.ts";
import type { ThreadNews } from "./request-thread.ts";
import { stateWord } from "./state-word.ts";

export interface EngineWatchOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly probe: Probe;
  readonly logger: Logger;
  readonly registry: SlotRegistry;
  readonly retryMemory: SharedArrayBuffer;
  /** How many threads tell of attempts. */
  readonly threads: number;
  readonly retry: () => Fleet["gateway"]["retry"];
  readonly tlsOf: (engine: string) => EngineTlsSecrets | null;
  /** The one in use. */
  readonly snapshot: () => ClusterSnapshot;
  /** An engine's port refuses. */
  readonly onDied: (engine: string) => void;
}

/**
 * What the process knows of its engines, on its main thread: health from probes, attempts and the control plane, penalties,
 * and how far retries may go. It is written where request threads read it, engine by engine.
 */
export class EngineWatch {
  readonly states: EngineStates;
  readonly #options: EngineWatchOptions;
  readonly #penalties: GuardPenalties;
  readonly #prober: Prober;
  readonly #retries: RetryKeeper;
  #refreshing: Promise<void> | null = null;

  constructor(options: EngineWatchOptions) {
    const { clock, random, probe, logger, registry, retry } = options;
    this.#options = options;
    this.states = new EngineStates({
      clock,
      onDied: options.onDied,
      penaltyOf: (engine) => this.#penalties.factor(engine),
      retryAfterCapMs: () => retry().retryAfterCapMs,
      onFacts: (engine, facts, coolingMs) => {
        const slot = registry.slotOf(engine);
        if (slot !== null) setEngine(registry.state, slot, stateWord(facts, coolingMs, this.#penalties.factor(engine)));
      },
      onHealth: (engine, { health, reason }, before) => {
        logger.info({ engine, health, before, reason }, "engine health");
        if (health === "dead") this.#prober.hurry(engine);
      },
    });
    this.#penalties = new GuardPenalties({
      nowMs: () => clock.nowMs(),
      threads: options.threads,
      snapshot: options.snapshot,
      takes: (engine) => this.states.takes(engine),
      out: () => this.states.out,
      risenWps: (engine) => this.#retries.risenWps(engine),
      onVerdict: (engine) => this.states.reread(engine),
      onEvidence: (engine, evidence) => tellEvidence(logger, engine, evidence),
    });
    this.#prober = new Prober(this.states, probe, options.tlsOf, clock, random);
    this.#retries = new RetryKeeper(options.retryMemory, retry, clock.nowMs());
  }

  /** Rows of each class's retry budget, by name. */
  retryRowsOf(snapshot: ClusterSnapshot): ReadonlyMap<string, RetryRows> {
    return this.#retries.rowsOf(snapshot);
  }

  /** Gets to know a snapshot's engines before requests are routed by it, a few in each turn of the event loop. */
  prepare({ engines }: ClusterSnapshot): Promise<void> {
    return inTurns(Object.entries(engines), ENGINES_A_TURN, ([id, spec]) => {
      this.states.adopt(id, spec);
      this.#prober.watch(id);
    });
  }

  /** Requests are routed by it from now on. */
  use(snapshot: ClusterSnapshot): void {
    this.states.use(snapshot);
    this.#retries.adopt(snapshot);
  }

  /** What a request thread tells of engines. */
  newsOf(thread: number): Pick<ThreadNews, "attemptBegan" | "firstToken" | "attemptEnded" | "heard"> {
    return {
      attemptBegan: (attempt, begun) => this.#penalties.began(thread, attempt, begun),
      firstToken: (attempt, ttftMs) => this.#penalties.firstToken(thread, attempt, ttftMs),
      attemptEnded: (attempt, engine, report) => {
        this.#penalties.ended(thread, attempt, report);
        this.states.ended(engine, report);
      },
      heard: (engine) => this.states.heard(engine),
    };
  }

  /** Nobody will tell how its attempts ended. */
  threadDied(thread: number): void {
    this.#penalties.threadDied(thread);
  }

  /** What the control plane says of engines between two snapshots. */
  hear(event: FeedEvent): void {
    if (event.event === "engines") this.states.setAdmin(event.data.engines);
    else if (event.event === "signals") this.states.setSignals(event.data.engines);
  }

  /**
   * Draws the conclusions from what was told since the last time; what time alone changes is written anew. Each in a turn of
   * its own, and the sums over a large snapshot in several: streams are served in between.
   */
  tick(): void {
    this.#penalties.tick();
    setImmediate(() => {
      this.states.refresh();
      // On a busy thread its turns may take longer than a tick: the next one then makes up for it.
      this.#refreshing ??= nextTurn()
        .then(() => this.#refreshRetries())
        .finally(() => {
          this.#refreshing = null;
        });
    });
  }

  #refreshRetries(): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    return partsInTurns(this.#retries.refreshParts(nowMs, (engine) => this.states.factorOf(engine)));
  }

  penaltyOf(engine: string): PenaltyVerdict {
    return this.#penalties.verdict(engine);
  }

  /** Tokens of the model that has the fewest for its retries. */
  leastRetryTokens(): number {
    return Math.min(...this.#retries.tokens().values());
  }

  /** What is reported of each engine since the last time; taken as it is read. */
  *takeDemand(): Generator<EngineDemand> {
    for (const counts of this.states.takeDemand()) yield { ...counts, ...this.#penalties.reported(counts.id) };
  }

  stop(): void {
    this.#prober.stop();
  }
}

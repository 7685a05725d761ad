import type { Outcome } from "@guidevane/core";
import { type AwaitedToken, AwaitedTokens } from "./awaited-tokens.ts";
import { BaseRate } from "./base-rate.ts";
import { ClassPaces, type Measure } from "./class-paces.ts";
import { EnginePenalty, type PenaltyEvidence } from "./engine-penalty.ts";
import type { FailingDesign } from "./failing-test.ts";
import {
  grantPenalties,
  localFactor,
  type PenaltyFleet,
  type PenaltyKind,
  type PenaltyWish,
} from "./penalty-limits.ts";
import { type RunningAttempt, RunningAttempts } from "./running-attempts.ts";
import { SLOW_LOG_RATIO, SLOW_RATIO } from "./slow-test.ts";

/** How often the tests are fed; also the least time between two observations of slowness of one engine. */
export const PENALTY_TICK_MS = 250;

/** An attempt as it begins. */
export interface AttemptBegun {
  readonly engine: string;
  readonly requestClass: string;
  /** What the profile says for this load and prompt, network included; null = a plain answer, or nothing is known. */
  readonly ttftMs: number | null;
  /** Mean time between tokens by the profile at this load; null = nothing is known. */
  readonly tbotMs: number | null;
}

/** What an engine's share is multiplied by, and what is told of it. */
export interface PenaltyVerdict {
  /** Both kinds together, less what the plan took already. */
  readonly factor: number;
  /** As reported to the control plane: what was granted, 1 where it was capped. */
  readonly failFactor: number;
  readonly slowFactor: number;
  /** The next request that is its own goes to it, whatever the factor. */
  readonly wantsRequest: boolean;
  readonly evidence: PenaltyEvidence | null;
}

const NONE: PenaltyVerdict = { factor: 1, failFactor: 1, slowFactor: 1, wantsRequest: false, evidence: null };

interface Begun extends AttemptBegun, RunningAttempt<Begun>, AwaitedToken<Begun> {
  readonly atMs: number;
  /** Its time to first token is known, or so late already that it was counted; or none is expected. */
  paced: boolean;
}

/**
 * Which engines answer worse than they should, and by how much their shares are cut. Pure: attempts are told to it as they
 * begin, give their first token and end, each once; a tick draws the conclusions. Client errors and aborts count nothing.
 */
export class Penalties {
  readonly #engines = new Map<string, EnginePenalty>();
  /** Those that a tick looks at: of the others nothing was heard since they were last found well. */
  readonly #awake = new Set<EnginePenalty>();
  #tickedMs: number;
  #fleet: PenaltyFleet | null = null;
  readonly #attempts = new RunningAttempts<Begun>();
  readonly #awaited = new AwaitedTokens<Begun>();
  readonly #paces = new ClassPaces();
  readonly #baseRate: BaseRate;
  #answers: { engine: EnginePenalty; fault: boolean; beganMs: number }[] = [];
  readonly #verdicts = new Map<string, PenaltyVerdict>();

  constructor(nowMs: number) {
    this.#baseRate = new BaseRate(nowMs);
    this.#tickedMs = nowMs;
  }

  /** @param attempt names it until it has ended; @returns whether a request was waited for and this is it */
  began(attempt: number, begun: AttemptBegun, nowMs: number): boolean {
    const { engine, requestClass, ttftMs, tbotMs } = begun;
    const paced = ttftMs === null;
    const links = { next: null, earlier: null, later: null };
    const added = { number: attempt, ...links, engine, requestClass, ttftMs, tbotMs, atMs: nowMs, paced };
    this.#attempts.add(added);
    if (!paced) this.#awaited.add(added);
    this.#engine(begun.engine, nowMs).began(nowMs);
    const verdict = this.#verdicts.get(begun.engine);
    if (verdict?.wantsRequest !== true) return false;
    this.#verdicts.set(begun.engine, { ...verdict, wantsRequest: false });
    return true;
  }

  /** @param ttftMs since the attempt began */
  firstToken(attempt: number, ttftMs: number): void {
    const begun = this.#attempts.find(attempt);
    if (begun === null || begun.paced || begun.ttftMs === null) return;
    this.#paceFirst(begun, logRatio(ttftMs, begun.ttftMs, UNFELT_MS.ttft));
  }

  /** @param tbotMs mean time between the answer's tokens; null = not known */
  ended(attempt: number, outcome: Outcome, tbotMs: number | null): void {
    const begun = this.#attempts.take(attempt);
    if (begun === null) return;
    this.#awaited.drop(begun);
    if (outcome !== "success" && outcome !== "fault") return;
    const engine = this.#engines.get(begun.engine);
    if (engine === undefined) return;
    this.#wake(engine);
    this.#answers.push({ engine, fault: outcome === "fault", beganMs: begun.atMs });
    if (outcome === "success" && tbotMs !== null && begun.tbotMs !== null)
      this.#pace(begun, "tbot", logRatio(tbotMs, begun.tbotMs, UNFELT_MS.tbot));
  }

  /** Attempts whose end nobody will tell. */
  forget(isGone: (attempt: number) => boolean): void {
    for (const attempt of this.#attempts) {
      if (!isGone(attempt.number)) continue;
      this.#attempts.take(attempt.number);
      this.#awaited.drop(attempt);
    }
  }

  /**
   * Takes in what came since the last tick and grants penalties within the limits.
   *
   * @returns the engines that have a verdict now or had one before
   */
  tick(fleet: PenaltyFleet, nowMs: number): Iterable<string> {
    this.#forgetOut(fleet);
    this.#judgeAnswers(nowMs);
    this.#countOverdue(nowMs);
    this.#paces.judge(this.#engines, nowMs);
    // Only now: what those answered last still tells of the base rate, and judging paces would bring back what was forgotten.
    this.#forgetGone(fleet);
    const wishes: PenaltyWish[] = [];
    const wishesOf = new Map<string, readonly PenaltyWish[]>();
    for (const engine of this.#awake) {
      const { id } = engine;
      if (!fleet.engines.has(id)) {
        this.#forget(id);
        continue;
      }
      engine.tick(this.#designFor, nowMs);
      const own = engine.wishes();
      if (own.length === 0) continue;
      wishesOf.set(id, own);
      wishes.push(...own);
    }
    this.#tickedMs = nowMs;
    const granted = grantPenalties(wishes, fleet);
    const told = new Set(this.#verdicts.keys());
    this.#verdicts.clear();
    for (const engine of this.#awake) {
      const { id } = engine;
      // Nothing speaks against most engines.
      if (engine.healthy && engine.keepsPace) {
        if (engine.unsuspected) this.#awake.delete(engine);
        continue;
      }
      const verdict = verdictOf(engine, wishesOf.get(id) ?? [], granted, fleet, nowMs);
      if (verdict === null) continue;
      this.#verdicts.set(id, verdict);
      told.add(id);
    }
    return told;
  }

  verdict(engine: string): PenaltyVerdict {
    return this.#verdicts.get(engine) ?? NONE;
  }

  /** Time to first token lately ÷ the expected one, by the class that says the most; null before enough was seen. */
  ttftRatio(engine: string): number | null {
    const most = this.#paces.highest("ttft", engine);
    return most === null ? null : Math.exp(most);
  }

  /** How many engines the next tick looks at. */
  get awake(): number {
    return this.#awake.size;
  }

  /** Of healthy engines, as learned. */
  get baseRate(): number {
    return this.#baseRate.rate;
  }

  /**
   * Health keeps all traffic from these, and brings them back by a ramp of its own. What their death looked like says
   * nothing of the process that comes back: held against it, a plan would leave it a fiftieth of its share.
   */
  #forgetOut({ engines, out }: PenaltyFleet): void {
    for (const id of out?.() ?? this.#engines.keys()) if (engines.get(id)?.takes === false) this.#forget(id);
  }

  /** Of those that a newer snapshot has no more nothing will be heard, but from attempts that wake them. */
  #forgetGone(fleet: PenaltyFleet): void {
    if (this.#fleet === fleet) return;
    this.#fleet = fleet;
    for (const id of this.#engines.keys()) if (!fleet.engines.has(id)) this.#forget(id);
  }

  #forget(id: string): void {
    const engine = this.#engines.get(id);
    if (engine === undefined) return;
    this.#engines.delete(id);
    this.#awake.delete(engine);
    this.#paces.forget(id);
  }

  /** Something was heard of it: what passed since the tick that found it well is made up for. */
  #wake(engine: EnginePenalty): void {
    if (this.#awake.has(engine)) return;
    engine.tick(this.#designFor, this.#tickedMs);
    this.#awake.add(engine);
  }

  readonly #designFor = (answersPerS: number): FailingDesign => this.#baseRate.design(answersPerS);

  #judgeAnswers(nowMs: number): void {
    let [faults, answers] = [0, 0];
    for (const { engine, fault, beganMs } of this.#answers) {
      if (this.#engines.get(engine.id) !== engine) continue;
      if (engine.healthy) {
        answers += 1;
        if (fault) faults += 1;
      }
      engine.answered(fault, beganMs, nowMs);
    }
    this.#answers = [];
    this.#baseRate.add(faults, answers, nowMs);
  }

  /** A stream that is three times as late as its class is slow already; one that never begins would never be counted. */
  #countOverdue(nowMs: number): void {
    this.#awaited.each((begun) => {
      const waitedMs = nowMs - begun.atMs;
      // Sooner no ratio passes, whatever is unfelt; so most need no logarithm.
      if (begun.ttftMs === null || waitedMs < SLOW_RATIO * begun.ttftMs) return;
      const ratio = logRatio(waitedMs, begun.ttftMs, UNFELT_MS.ttft);
      const usual = this.#paces.usual("ttft", begun.requestClass, nowMs) ?? 0;
      if (ratio - Math.max(0, usual) >= SLOW_LOG_RATIO) this.#paceFirst(begun, ratio);
    });
  }

  #paceFirst(begun: Begun, ratio: number): void {
    begun.paced = true;
    this.#awaited.drop(begun);
    this.#pace(begun, "ttft", ratio);
  }

  #pace({ engine, requestClass, atMs }: Begun, measure: Measure, ratio: number): void {
    const paced = this.#engines.get(engine);
    if (paced !== undefined) this.#wake(paced);
    this.#paces.observe(measure, requestClass, engine, atMs, ratio);
  }

  #engine(id: string, nowMs: number): EnginePenalty {
    let engine = this.#engines.get(id);
    if (engine === undefined) {
      engine = new EnginePenalty(id, this.#baseRate.design(1), nowMs);
      this.#engines.set(id, engine);
      this.#awake.add(engine);
    }
    return engine;
  }
}

/** Added to both times, ms: what nobody feels is no slowness, however many times the expected it is. */
const UNFELT_MS = { ttft: 20, tbot: 2 } as const;

function logRatio(observedMs: number, expectedMs: number, unfeltMs: number): number {
  return Math.log((observedMs + unfeltMs) / (expectedMs + unfeltMs));
}

function verdictOf(
  engine: EnginePenalty,
  wishes: readonly PenaltyWish[],
  granted: ReadonlySet<PenaltyWish>,
  fleet: PenaltyFleet,
  nowMs: number,
): PenaltyVerdict | null {
  const capped = new Set<PenaltyKind>(wishes.filter((wish) => !granted.has(wish)).map(({ kind }) => kind));
  const evidence = engine.evidence(capped, nowMs);
  if (evidence === null) return null;
  const kept = wishes.filter((wish) => granted.has(wish));
  const factorOf = (kind: PenaltyKind): number => kept.find((wish) => wish.kind === kind)?.factor ?? 1;
  return {
    factor: kept.reduce((product, wish) => product * localFactor(wish, fleet.engines.get(wish.engine)), 1),
    failFactor: factorOf("failing"),
    slowFactor: factorOf("slow"),
    wantsRequest: kept.length > 0 && engine.wantsRequest(nowMs),
    evidence,
  };
}

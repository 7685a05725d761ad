import type { ClusterSnapshot, DemandReport, Outcome } from "@guidevane/core";
import {
  Admission,
  admissionClasses,
  createRetryMemory,
  type ExpectedTimes,
  expectedTimes,
  FirstShare,
  PENALTY_TICK_MS,
  Penalties,
  type PenaltyFleet,
  PromptLengths,
  penaltyFleet,
  plannedShed,
  RetryBudget,
  RetryKeeper,
  type RetryRows,
} from "@guidevane/guard";
import type { PolicyWorld } from "../policy.ts";
import type { GuidevaneParts } from "./parts.ts";

/** What admission must know of a request that was just routed. */
interface RoutedFacts {
  readonly shed: number;
  readonly first: boolean;
  readonly keyHash2: number;
  readonly sinceControlMs: number;
}

/**
 * One gateway's guard rails, all of the guard's own code: admission, the retry budget, penalties, and an engine's "not now".
 * Attempts are named by their request, which has one at a time.
 */
export class GatewayGuards {
  /** Part of its share that each engine takes now, 0..1, by health and penalties together. */
  readonly factor: Float64Array;
  readonly #world: PolicyWorld;
  readonly #gateway: number;
  readonly #parts: GuidevaneParts;
  readonly #admission: Admission;
  readonly #keeper: RetryKeeper;
  readonly #budget: RetryBudget;
  readonly #penalties: Penalties;
  readonly #prompts = new PromptLengths();
  readonly #firstShares: readonly FirstShare[];
  readonly #coolUntilMs: Float64Array;
  readonly #attempts: Uint32Array;
  readonly #faults: Uint32Array;
  readonly #isIn: Uint8Array;
  readonly #placeOf: ReadonlyMap<string, number>;
  #rows: (RetryRows | undefined)[] = [];
  #expected: (ExpectedTimes | null)[] = [];
  #fleet!: PenaltyFleet;
  #isNew = true;

  constructor(world: PolicyWorld, gateway: number, parts: GuidevaneParts, snapshot: ClusterSnapshot) {
    const { fleet, clock, workload } = world;
    const count = fleet.engines.length;
    this.#world = world;
    this.#gateway = gateway;
    this.#parts = parts;
    this.factor = new Float64Array(count).fill(1);
    this.#coolUntilMs = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
    this.#attempts = new Uint32Array(count);
    this.#faults = new Uint32Array(count);
    this.#isIn = new Uint8Array(workload.size);
    this.#placeOf = new Map(fleet.engines.map(({ id }, engine) => [id, engine]));
    this.#firstShares = fleet.classes.map(() => new FirstShare());
    this.#admission = new Admission(clock, this.#limits());
    const memory = createRetryMemory();
    this.#keeper = new RetryKeeper(memory, () => fleet.fleet.gateway.retry, clock.nowMs());
    this.#budget = new RetryBudget(memory);
    this.#penalties = new Penalties(clock.nowMs());
    this.use(snapshot);
    this.#tickLater();
  }

  /** Whether anything of the engines has changed since it was last asked. */
  takeNew(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }

  use(snapshot: ClusterSnapshot): void {
    this.#isNew = true;
    const { fleet, liveGateways, gatewayCluster } = this.#world;
    this.#admission.adopt(admissionClasses(snapshot, liveGateways(gatewayCluster[this.#gateway]!)), this.#limits());
    const rows = this.#keeper.rowsOf(snapshot);
    this.#rows = fleet.classes.map(({ name }) => rows.get(name));
    this.#keeper.adopt(snapshot);
    this.#expected = fleet.engines.map(({ id }) => {
      const engine = snapshot.engines[id];
      return engine === undefined ? null : expectedTimes(engine);
    });
    this.#prompts.keep(snapshot.engines);
    this.#fleet = penaltyFleet(
      snapshot,
      (id) => this.#health(this.#placeOf.get(id)!) > 0,
      (id) => this.#keeper.risenWps(id),
    );
  }

  /** Whether the request comes in; it then holds its place until it leaves. */
  enter(request: number, facts: RoutedFacts): boolean {
    const requestClass = this.#classOf(request);
    const { clock, fleet } = this.#world;
    const spec = fleet.classes[requestClass]!;
    if (this.#parts.admission) {
      const share = this.#firstShares[requestClass]!;
      share.add(facts.first, clock.nowMs());
      if (plannedShed({ ...facts, firstShare: share.value })) return false;
      if (this.#admission.ask(spec.name, null).kind !== "admitted") return false;
      this.#isIn[request] = 1;
    }
    const rows = this.#rows[requestClass];
    // What a client tries again says so (`x-stainless-retry-count`), and earns nothing.
    if (rows !== undefined) this.#budget.firstAttempt(rows, spec.work, this.#world.clientAttempts[request]! <= 1);
    return true;
  }

  leave(request: number): void {
    if (this.#isIn[request] === 0) return;
    this.#isIn[request] = 0;
    this.#admission.leave(this.#world.fleet.classes[this.#classOf(request)]!.name);
  }

  /** Takes what a retry costs; false where that is not there. */
  takeRetry(request: number): boolean {
    if (!this.#parts.budget) return true;
    const requestClass = this.#classOf(request);
    const rows = this.#rows[requestClass];
    return rows === undefined || this.#budget.take(rows, this.#world.fleet.classes[requestClass]!.work);
  }

  /** The retry was not made after all. */
  giveBack(request: number): void {
    const requestClass = this.#classOf(request);
    const rows = this.#rows[requestClass];
    if (this.#parts.budget && rows !== undefined)
      this.#budget.giveBack(rows, this.#world.fleet.classes[requestClass]!.work);
  }

  began(request: number, engine: number): void {
    this.#attempts[engine]! += 1;
    if (!this.#parts.penalties) return;
    const { fleet, workload, clock } = this.#world;
    const expected = this.#expected[engine];
    const { id } = fleet.engines[engine]!;
    const promptTokens = workload.promptTokens[request]!;
    this.#prompts.add(id, promptTokens);
    const begun = {
      engine: id,
      requestClass: fleet.classes[this.#classOf(request)]!.name,
      ttftMs: expected?.ttftMs(promptTokens, this.#prompts.met(id)) ?? null,
      tbotMs: expected?.tbotMs ?? null,
    };
    if (this.#penalties.began(request, begun, clock.nowMs())) this.#changed(engine);
  }

  firstToken(request: number, ttftMs: number): void {
    if (this.#parts.penalties) this.#penalties.firstToken(request, ttftMs);
  }

  /** @param tbotMs mean time between the answer's tokens; null = not known */
  ended(request: number, engine: number, outcome: Outcome, tbotMs: number | null): void {
    if (outcome === "fault") this.#faults[engine]! += 1;
    if (this.#parts.penalties) this.#penalties.ended(request, outcome, tbotMs);
    if (outcome === "saturated") this.#cool(engine);
  }

  #cool(engine: number): void {
    const { clock } = this.#world;
    this.#coolUntilMs[engine] = clock.nowMs() + COOLING_MS;
    this.#isNew = true;
    clock.after(COOLING_MS, () => {
      this.#isNew = true;
    });
  }

  isCooling(engine: number): boolean {
    return this.#coolUntilMs[engine]! > this.#world.clock.nowMs();
  }

  /** Health says something new of the engines. */
  healthChanged(): void {
    for (let engine = 0; engine < this.factor.length; engine++) this.#changed(engine);
  }

  /** What the control plane is told of each engine since the last time. */
  report(): DemandReport["engines"] {
    const told = this.#world.fleet.engines.map(({ id }, engine) => {
      const { failFactor, slowFactor } = this.#penalties.verdict(id);
      const counts = { attempts: this.#attempts[engine]!, faults: this.#faults[engine]! };
      return [
        id,
        { ...counts, failFactor, slowFactor, dead: this.#health(engine) === 0, ttftRatio: null, rttMs: null },
      ] as const;
    });
    this.#attempts.fill(0);
    this.#faults.fill(0);
    return Object.fromEntries(told);
  }

  #tickLater(): void {
    const { clock } = this.#world;
    clock.after(PENALTY_TICK_MS, () => {
      if (this.#parts.penalties)
        for (const id of this.#penalties.tick(this.#fleet, clock.nowMs())) this.#changed(this.#placeOf.get(id)!);
      this.#keeper.refresh(clock.nowMs(), (id) => this.factor[this.#placeOf.get(id)!]!);
      this.#tickLater();
    });
  }

  #changed(engine: number): void {
    const { factor, wantsRequest } = this.#penalties.verdict(this.#world.fleet.engines[engine]!.id);
    this.factor[engine] = this.#health(engine) * (wantsRequest ? 1 : factor);
    this.#isNew = true;
  }

  #health(engine: number): number {
    return this.#world.health[this.#gateway * this.#world.fleet.engines.length + engine]!;
  }

  #classOf(request: number): number {
    const { places, workload } = this.#world;
    return places.class[workload.requestClass[request]!]!;
  }

  /** In the lab nobody waits at a gateway, as by default. */
  #limits(): { maxStreams: number; queue: number; queueMs: number } {
    return { ...this.#world.fleet.fleet.gateway.limits, queue: 0 };
  }
}

/** What an engine asks for that is saturated and says no more. */
const COOLING_MS = 1000;

import { type Random, seededRandom, standardNormal } from "@guidevane/core";
import { EnvoyOutliers } from "./envoy-outlier.fixture.ts";
import { PENALTY_TICK_MS, Penalties } from "./penalties.ts";
import type { PenaltyFleet } from "./penalty-limits.ts";

/** What an engine of the harness does at a time. */
export interface Behaviour {
  readonly faultRate: number;
  /** Times as slow as expected. */
  readonly slowness: number;
}

export interface HarnessOptions {
  readonly engines: number;
  /** Poisson arrivals at each engine while it is not penalised. */
  readonly rps: number;
  readonly seed: number;
  readonly behaviour: (engine: number, nowMs: number) => Behaviour;
  /** σ of ln TTFT. Default 0.4. */
  readonly noise?: number;
  /** Correlation of that noise from one request to the next. Default 0. */
  readonly memory?: number;
  readonly fleet?: PenaltyFleet;
  /** Told after each tick. */
  readonly onTick: (harness: Harness, nowMs: number) => void;
}

export interface Harness {
  readonly penalties: Penalties;
  readonly envoy: EnvoyOutliers;
  /** Requests sent to each engine so far. */
  readonly sent: Float64Array;
}

const EXPECTED_TTFT_MS = 200;
const EXPECTED_TBOT_MS = 15;
const ANSWER_MS = 2000;

export const nameOf = (engine: number): string => `e${engine}`;

/** Equal engines under one class, each with its part of the ring and load for 60 % of its capacity. */
export function evenFleet(engines: number, utilisation = 0.6): PenaltyFleet {
  const ids = Array.from({ length: engines }, (_, i) => nameOf(i));
  const figures = { takes: true, plannedFactor: 1, loadWps: utilisation * 10, capacityWps: 10 };
  return {
    engines: new Map(ids.map((id) => [id, figures])),
    cells: [new Map(ids.map((id) => [id, 1 / engines]))],
  };
}

/** Runs the penalties over made-up engines in virtual time, one tick after another. */
export function runHarness(options: HarnessOptions, untilMs: number): Harness {
  const { engines, rps, behaviour, noise = 0.4, memory = 0, onTick } = options;
  const random = seededRandom(options.seed);
  const fleet = options.fleet ?? evenFleet(engines);
  const penalties = new Penalties(0);
  const harness: Harness = { penalties, envoy: new EnvoyOutliers(engines), sent: new Float64Array(engines) };
  const due = new Map<number, (() => void)[]>();
  const after = (nowMs: number, waitMs: number, task: () => void): void => {
    const slot = Math.max(Math.ceil((nowMs + waitMs) / PENALTY_TICK_MS), nowMs / PENALTY_TICK_MS + 1);
    const tasks = due.get(slot);
    if (tasks === undefined) due.set(slot, [task]);
    else tasks.push(task);
  };
  const lastNoise = new Float64Array(engines);
  let attempts = 0;
  const send = (engine: number, nowMs: number): void => {
    const attempt = attempts++;
    const { faultRate, slowness } = behaviour(engine, nowMs);
    harness.sent[engine]! += 1;
    const begun = { engine: nameOf(engine), requestClass: "chat", ttftMs: EXPECTED_TTFT_MS, tbotMs: EXPECTED_TBOT_MS };
    penalties.began(attempt, begun, nowMs);
    if (random() < faultRate) {
      after(nowMs, 20, () => {
        penalties.ended(attempt, "fault", null);
        harness.envoy.answered(engine, true, nowMs);
      });
      return;
    }
    lastNoise[engine] = memory * lastNoise[engine]! + Math.sqrt(1 - memory * memory) * standardNormal(random);
    const late = slowness * Math.exp(noise * lastNoise[engine]! - (noise * noise) / 2);
    const ttftMs = EXPECTED_TTFT_MS * late;
    after(nowMs, ttftMs, () => penalties.firstToken(attempt, ttftMs));
    after(nowMs, ttftMs + ANSWER_MS * slowness, () => {
      penalties.ended(attempt, "success", EXPECTED_TBOT_MS * slowness * Math.exp(0.1 * standardNormal(random)));
      harness.envoy.answered(engine, false, nowMs);
    });
  };
  for (let slot = 0; slot * PENALTY_TICK_MS < untilMs; slot++) {
    const nowMs = slot * PENALTY_TICK_MS;
    for (const task of due.get(slot) ?? []) task();
    due.delete(slot);
    for (let engine = 0; engine < engines; engine++) {
      for (let arrivals = poisson((rps * PENALTY_TICK_MS) / 1000, random); arrivals > 0; arrivals--) {
        const { factor, wantsRequest } = penalties.verdict(nameOf(engine));
        if (wantsRequest || random() < factor) send(engine, nowMs);
      }
    }
    penalties.tick(fleet, nowMs);
    harness.envoy.tick(nowMs);
    onTick(harness, nowMs);
  }
  return harness;
}

function poisson(mean: number, random: Random): number {
  let count = 0;
  for (let product = random(); product > Math.exp(-mean); product *= random()) count++;
  return count;
}

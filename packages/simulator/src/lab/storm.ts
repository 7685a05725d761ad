import { type Fleet, loadFleet } from "@guidevane/core";
import { runLab } from "./lab.ts";
import type { ClientOptions, Failure } from "./lab-options.ts";
import { guidevaneWith } from "./policies/guidevane.ts";
import type { PolicyDefinition } from "./policy.ts";
import { syntheticWorkload } from "./synthetic.ts";
import { ENDED, type Tally } from "./tally.ts";

/**
 * Does a fleet come back after a trigger, or do its own retries keep it down? (Bronson and others, "Metastable failures in
 * distributed systems", HotOS 2021.) Two regions of two engines each, three gateways a cluster, conversations whose
 * prompts are mostly cached; a client that has no first token after five seconds is lost. All route by the production
 * plan, rings and router; what differs is who tries again, and whether anything guards the engines.
 */
export const STORM_RULES = {
  guidevane: { parts: {}, client: {} },
  "no retries": { parts: { admission: false, penalties: false }, attempts: 1, client: {} },
  "four attempts": {
    parts: { admission: false, penalties: false, budget: false },
    attempts: 4,
    client: { attempts: 4 },
  },
  "budget of 20 %": {
    parts: { admission: false, penalties: false, budget: false },
    attempts: 4,
    client: { attempts: 4, retryRatio: 0.2 },
  },
} as const;
export type StormRule = keyof typeof STORM_RULES;

export const TRIGGERS = ["half the capacity", "three times the demand", "a slow region", "cold caches"] as const;
export type Trigger = (typeof TRIGGERS)[number];

export interface StormOptions {
  readonly rule: StormRule;
  readonly trigger: Trigger;
  /** Offered work ÷ capacity before and after the trigger. */
  readonly utilisation: number;
  /** Engines drop work whose client has left; else they do it all the same. */
  readonly cancels: boolean;
  readonly seed: number;
}

export interface Storm {
  /** From the end of the trigger until 97 % of the requests of the next half minute are answered, s; infinite = never. */
  readonly recoveryS: number;
  /** Part of the requests of the last minute before the trigger that were answered. */
  readonly goodBefore: number;
  /** Most work of attempts ÷ work of first attempts in any 10 s; a retry that no engine had seen before adds none. */
  readonly amplification: number;
  /** Least first attempts in 10 s. */
  readonly firstsPer10s: number;
}

export const STORM_GATEWAYS = 3;
const ENGINE_WPS = 10;
const ENGINES = 4;
const CLUSTERS = 2;
const BEFORE_MS = 60_000;
const AFTER_MS = 120_000;
const LASTS_MS: Readonly<Record<Trigger, number>> = {
  "half the capacity": 15_000,
  "three times the demand": 10_000,
  "a slow region": 15_000,
  "cold caches": 0,
};
const GOOD = 0.97;
/** Goodput is judged over so many seconds: at 0.9 chance alone has ten in which demand is above the capacity. */
const WINDOW_S = 30;
const PATIENCE_MS = 5000;

const PROFILE = `
profile: p
reference: { promptTokens: 256, outputTokens: 64 }
work: { prefillPerKtok: 1.953125, decodePerKtok: 7.8125 }
prefillMsPerTok: 0.12
loop: open
capacityWps: ${ENGINE_WPS}
ttftMs: [[0, 50], [0.5, 75], [0.8, 140], [0.9, 250], [0.97, 550]]
tbotMs: [[0, 12], [0.5, 15], [0.9, 20]]
`;

const FLEET = `
clusters: { east: { region: east }, west: { region: west } }
engines:
  east-1: { url: "http://a:1", region: east, models: [m], profile: p }
  east-2: { url: "http://b:1", region: east, models: [m], profile: p }
  west-1: { url: "http://c:1", region: west, models: [m], profile: p }
  west-2: { url: "http://d:1", region: west, models: [m], profile: p }
classes: { chat: { model: m, work: 1, promptTokens: 256, outputTokens: 64 } }
network: { file: rtt.csv }
profiles: { p: { file: p.yaml } }
demandRps: { east: { chat: 1 }, west: { chat: 1 } }
`;

export async function runStorm(options: StormOptions): Promise<Storm> {
  const { rule, trigger, utilisation, cancels, seed } = options;
  const rps = (utilisation * ENGINE_WPS * ENGINES) / CLUSTERS;
  const file = await loadFleet(FLEET, "storm", async (path) =>
    path === "rtt.csv" ? "from,to,rtt_ms\neast,west,60\n" : PROFILE,
  );
  const { parts, client, ...rest } = STORM_RULES[rule];
  const fleet: Fleet = {
    ...file,
    demandRps: new Map([...file.clusters.keys()].map((name) => [name, new Map([["chat", rps]])])),
    gateway: { ...file.gateway, retry: { ...file.gateway.retry, ...rest } },
  };
  const lastsMs = LASTS_MS[trigger];
  const isSpike = trigger === "three times the demand";
  const workload = syntheticWorkload({
    fleet,
    seed,
    seconds: (BEFORE_MS + lastsMs + AFTER_MS) / 1000,
    // A spike of conversations would go on with their later turns.
    turns: isSpike ? 1 : 5,
    thinkMs: 3000,
    systemTokens: 1024,
    shape: (_, atMs) => (isSpike && atMs >= BEFORE_MS && atMs < BEFORE_MS + lastsMs ? 3 : 1),
  });
  const beginMs = workload.settleMs + BEFORE_MS;
  const attempts = new AttemptCounts();
  const { tally } = runLab({
    fleet,
    workload,
    seed,
    policy: attempts.counted(guidevaneWith(rule, parts)),
    gatewaysPerCluster: STORM_GATEWAYS,
    kvTokens: 400_000,
    client: { ...ONE_CLIENT, cancels, ...client },
    failures: failuresOf(trigger, beginMs, lastsMs),
  });
  const endS = (beginMs + lastsMs) / 1000;
  const lastS = Math.floor((endS * 1000 + AFTER_MS - PATIENCE_MS) / 1000);
  return {
    recoveryS: recoveryS(tally, endS, lastS),
    goodBefore: goodPart(tally, beginMs / 1000 - 60, 60),
    ...attempts.most(Math.floor(workload.settleMs / 1000), lastS),
  };
}

const ONE_CLIENT: ClientOptions = { timeoutMs: PATIENCE_MS, cancels: true, attempts: 1, backoffMs: 0 };

function failuresOf(trigger: Trigger, atMs: number, forMs: number): Failure[] {
  if (trigger === "half the capacity")
    return ["east-1", "west-1"].map((engine) => ({ kind: "death", engine, atMs, forMs }));
  if (trigger === "a slow region")
    return ["west-1", "west-2"].map((engine) => ({ kind: "slowdown", engine, factor: 3, atMs, forMs }));
  return trigger === "cold caches" ? [{ kind: "cold-cache", atMs }] : [];
}

/** Attempts and first attempts by second, in work of the class. */
class AttemptCounts {
  readonly #firsts: number[] = [];
  readonly #attempts: number[] = [];

  counted(policy: PolicyDefinition): PolicyDefinition {
    return {
      ...policy,
      create: (world, values) => {
        const inner = policy.create(world, values);
        const count = (to: number[], change: number): void => {
          const second = Math.floor(world.clock.nowMs() / 1000);
          to[second] = (to[second] ?? 0) + change;
        };
        const route: typeof inner.route = (gateway, request, tried, isFree) => {
          const engine = inner.route(gateway, request, tried, isFree);
          if (engine < 0) return engine;
          // The attempt before a free one met no engine.
          if (!isFree) count(this.#attempts, 1);
          if (tried.length === 0 && world.clientAttempts[request] === 1) count(this.#firsts, 1);
          return engine;
        };
        return {
          route,
          tick: () => inner.tick?.(),
          sent: (...facts) => inner.sent?.(...facts),
          firstToken: (...facts) => inner.firstToken?.(...facts),
          ended: (...facts) => inner.ended?.(...facts),
          over: (...facts) => inner.over?.(...facts),
          report: (gateway) => inner.report?.(gateway) ?? {},
        };
      },
    };
  }

  most(fromS: number, toS: number): { amplification: number; firstsPer10s: number } {
    let [amplification, firstsPer10s] = [1, Number.POSITIVE_INFINITY];
    for (let second = fromS; second + 10 <= toS; second++) {
      const firsts = sum(this.#firsts, second, 10);
      amplification = Math.max(amplification, sum(this.#attempts, second, 10) / firsts);
      firstsPer10s = Math.min(firstsPer10s, firsts);
    }
    return { amplification, firstsPer10s };
  }
}

function recoveryS(tally: Tally, endS: number, lastS: number): number {
  for (let second = endS; second + WINDOW_S <= lastS; second++)
    if (goodPart(tally, second, WINDOW_S) >= GOOD) return Math.round(second - endS);
  return Number.POSITIVE_INFINITY;
}

/** Of the requests that came in these seconds the part that was answered. */
function goodPart({ arrivedMs, ended }: Tally, fromS: number, seconds: number): number {
  let [good, all] = [0, 0];
  for (const [row, atMs] of arrivedMs.entries()) {
    if (!(atMs >= fromS * 1000 && atMs < (fromS + seconds) * 1000)) continue;
    all += 1;
    if (ended[row] === ENDED.answered) good += 1;
  }
  return good / all;
}

function sum(values: readonly number[], from: number, count: number): number {
  let total = 0;
  for (let at = from; at < from + count; at++) total += values[at] ?? 0;
  return total;
}

import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { AskedRequest, OpenLoad, type Seen } from "./open-load.ts";
import { StressFleet } from "./stress-fleet.ts";

export interface KilledEngineOptions {
  readonly rateRps: number;
  /** Keys that are asked one after the other, before and after, for where they are. */
  readonly keys: number;
  /** Load before the keys are asked for the first time. */
  readonly settleMs: number;
  /** From the kill to the engine's return, and how long is watched after it. */
  readonly awayMs: number;
  readonly watchMs: number;
  readonly threads: number;
  /** Times of a request ÷ those of engines made for tests. */
  readonly slowness: number;
  /** Only the one that is killed is a process of its own. */
  readonly short?: boolean;
}

/** What clients and the gateway's counts saw of one engine of four killed with SIGKILL under load, and of its return. */
export interface KilledEngine {
  readonly sent: number;
  /** Failures of answers of which no byte had come, by what was wrong. */
  readonly errorsBeforeAnswer: Readonly<Record<string, number>>;
  /** Answers cut in the middle, and how many were in the middle at that engine when it died. */
  readonly cut: number;
  readonly running: number;
  /** From the kill to the last failed attempt at the engine that a poll of the counts found; 0 where there was none. */
  readonly quietMs: number;
  readonly attemptsFailed: number;
  readonly worstMs: number;
  /** Of the keys that lived elsewhere: how many there are, how many were elsewhere after, and of these by the bound. */
  readonly livingKeys: number;
  readonly movedKeys: number;
  readonly movedByBound: number;
  /** And whose slot a plan made since gave to another engine. */
  readonly movedByPlan: number;
  /** At the end: keys where they were before all this, and those that the bound had moved meanwhile. */
  readonly homeAgain: number;
  readonly keptByBound: number;
  readonly victimKeys: number;
  /** From its port's return to the first answer from there; null = none came. */
  readonly backMs: number | null;
  /** Its share of the answers in each second after its return. */
  readonly shares: readonly number[];
  readonly lateMs: number;
}

const ENGINES = { one: "a", two: "a", three: "a", four: "a" };
const VICTIM = "two";
const POLL_MS = 100;
/** Keys are asked so many at a time where an answer takes 20 ms at least, and more where it takes longer. */
const ASKING = 2;
const ASKING_RPS = (ASKING * 1000) / 20;

/** Four emulated engines, a control plane and a gateway, each a process. */
export async function killEngine(options: KilledEngineOptions): Promise<KilledEngine> {
  // Three of them hold the load and the asking for keys at 60 %: what is shown is the kill, no overload.
  const capacityWps = (options.rateRps + ASKING_RPS) / 3 / 0.6;
  const inThisProcess = options.short ? Object.keys(ENGINES).filter((id) => id !== VICTIM) : undefined;
  const fleet = new StressFleet({
    engines: ENGINES,
    capacityWps,
    tickMs: 1000,
    threads: options.threads,
    slowness: options.slowness,
    inThisProcess,
  });
  const seen: Seen[] = [];
  try {
    await fleet.start();
    const urls = () => fleet.urlsFor("a");
    const load = new OpenLoad({ urls, rateRps: options.rateRps, seed: 1, onSeen: (each) => seen.push(each) });
    await delay(options.settleMs);
    const places = () => placesOf(urls, options.keys, ASKING * options.slowness);
    const before = await places();

    const failedAttempts = () => fleet.metric("a", "guidevane_attempts_total", `engine="${VICTIM}",outcome="fault"`);
    const failedBefore = await failedAttempts();
    const killedMs = performance.now();
    await fleet.program(VICTIM).end("SIGKILL");
    const diedMs = performance.now();
    const watched = watchFailures(failedAttempts, failedBefore, killedMs, options.awayMs);
    await delay(options.awayMs / 2);
    const during = await places();
    const { quietMs, attemptsFailed } = await watched;

    await fleet.startEngine(VICTIM);
    const returnedMs = performance.now();
    await delay(options.watchMs);
    const after = await places();
    await load.stop();
    await fleet.noSlotLeft();

    const affected = seen.filter(({ endMs }) => endMs >= killedMs);
    const failed = affected.filter(({ failure }) => failure !== null);
    const living = before.filter(({ engine }) => engine !== VICTIM);
    const moved = living.filter(({ key, engine }) => during[key]!.engine !== engine);
    const back = affected.filter(({ engine, sentMs }) => engine === VICTIM && sentMs >= returnedMs);
    return {
      sent: seen.length,
      errorsBeforeAnswer: tally(failed.filter(({ firstByteMs }) => firstByteMs === null)),
      cut: failed.filter(({ firstByteMs }) => firstByteMs !== null).length,
      running: affected.filter(({ engine, sentMs }) => engine === VICTIM && sentMs <= diedMs).length,
      quietMs,
      attemptsFailed,
      worstMs: affected.reduce((most, { sentMs, endMs }) => Math.max(most, endMs - sentMs), 0),
      livingKeys: living.length,
      movedKeys: moved.length,
      movedByPlan: moved.filter(({ key, version }) => during[key]!.reason === "home" && during[key]!.version > version)
        .length,
      movedByBound: moved.filter(({ key }) => BY_LOAD.has(during[key]!.reason ?? "")).length,
      victimKeys: before.length - living.length,
      homeAgain: before.filter(({ key, engine }) => after[key]!.engine === engine).length,
      keptByBound: before.filter(
        ({ key, engine }) => after[key]!.engine !== engine && BY_LOAD.has(after[key]!.reason ?? ""),
      ).length,
      backMs: back.length === 0 ? null : Math.min(...back.map(({ endMs }) => endMs)) - returnedMs,
      shares: sharesBySecond(affected, returnedMs, options.watchMs),
      lateMs: load.lateMs,
    };
  } finally {
    await fleet.stop();
  }
}

/** A key held away from home by load is no consequence of the death. */
const BY_LOAD: ReadonlySet<string> = new Set(["bounded", "followed"]);

/** Where each key is served now: one request each, a few at a time. */
async function placesOf(urls: () => readonly string[], keys: number, atATime: number): Promise<Seen[]> {
  const agent = new Agent({ keepAlive: true });
  const places: Seen[] = [];
  let next = 0;
  const ask = async (): Promise<void> => {
    while (next < keys) {
      const key = next++;
      // Its draws: this key, no stream, nobody leaves.
      const draws = [(key + 0.5) / keys, 1, 1];
      places[key] = await new AskedRequest(agent, { urls, keys, maxTokens: 1, streamPart: 0 }, () => draws.shift()!)
        .ended;
    }
  };
  await Promise.all(Array.from({ length: atATime }, ask));
  agent.destroy();
  return places;
}

async function watchFailures(count: () => Promise<number>, before: number, killedMs: number, forMs: number) {
  let [last, quietMs] = [before, 0];
  while (performance.now() < killedMs + forMs) {
    const now = await count();
    if (now > last) quietMs = performance.now() - killedMs;
    last = now;
    await delay(POLL_MS);
  }
  return { quietMs, attemptsFailed: last - before };
}

function sharesBySecond(seen: readonly Seen[], fromMs: number, forMs: number): number[] {
  return Array.from({ length: Math.floor(forMs / 1000) }, (_, second) => {
    const within = seen.filter(({ sentMs }) => Math.floor((sentMs - fromMs) / 1000) === second);
    return within.length === 0 ? 0 : within.filter(({ engine }) => engine === VICTIM).length / within.length;
  });
}

export function tally(failed: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { failure } of failed) counts[failure ?? "none"] = (counts[failure ?? "none"] ?? 0) + 1;
  return counts;
}

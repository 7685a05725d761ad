import { BroadcastChannel } from "node:worker_threads";
import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import type { Logger } from "./logger.ts";
import { fleetOf } from "./testing/fleet.ts";
import { MORTALS, type MortalOrder } from "./testing/mortals.ts";
import { jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";
import { ThreadDeaths } from "./thread-deaths.ts";

const setup = createSetup(afterEach);

/** Which request threads listen, by what the process logs of them. */
class Listening implements Logger {
  readonly threads = new Set([0, 1]);
  deaths = 0;

  info({ thread }: { readonly thread?: number }): void {
    if (thread !== undefined) this.threads.add(thread);
  }

  warn(): void {}

  error({ thread }: { readonly thread?: number }): void {
    if (thread === undefined) return;
    this.threads.delete(thread);
    this.deaths += 1;
  }
}

/** Ends every request thread that listens, and resolves when the process has seen all of them end. */
async function killAll(log: Listening): Promise<void> {
  const deaths = log.deaths + log.threads.size;
  const channel = new BroadcastChannel(MORTALS);
  const killed = new Set<number>();
  channel.onmessage = (event) => {
    const { living } = (event as { readonly data: { readonly living: number } }).data;
    if (!killed.has(living)) channel.postMessage(living satisfies MortalOrder);
    killed.add(living);
  };
  channel.postMessage(null satisfies MortalOrder);
  await eventually(() => log.deaths === deaths);
  channel.close();
}

async function enginesOf(gateway: Gateway): Promise<readonly string[]> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { readonly id: string }[];
  return engines.map(({ id }) => id);
}

async function readiness(gateway: Gateway): Promise<number> {
  return (await fetch(`${gateway.adminUrl}/readyz`)).status;
}

async function statusOf(gateway: Gateway): Promise<number> {
  const client = await setup.client(gateway);
  client.post(CHAT, PLAIN_BODY);
  return (await client.answer()).status;
}

describe("request threads that all die, again and again", () => {
  it("are at first never all away for longer than the shortest wait", async () => {
    const clock = new ManualClock();
    const log = new Listening();
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const requestWorker = new URL("./testing/mortal-worker.ts", import.meta.url);
    const gateway = await setup.before({ a: engine }, "", { threads: 2, requestWorker, clock, logger: log });
    clock.advance(1000);

    expect(await statusOf(gateway)).toBe(200);
    const served = () => metric(gateway, 'guidevane_requests_total{class="m",outcome="success"}');
    expect(await served()).toBe(1);
    await killAll(log);
    await eventually(() => log.threads.size === 1);
    // What the dead had counted counts once, and nobody waits for one that is still to be replaced.
    expect(await served()).toBe(1);
    expect(await statusOf(gateway)).toBe(200);
    // Engines are watched on, though no thread was left that used the snapshot.
    expect(await enginesOf(gateway)).toEqual(["a"]);
    // The one that died last waits for longer by then, the other one is due.
    for (const round of [0, 1]) {
      await killAll(log);
      clock.advance(249);
      expect(log.threads.size).toBe(0);
      expect(await readiness(gateway)).toBe(503);
      clock.advance(1);
      await eventually(() => log.threads.size === 1);
      expect([round, await statusOf(gateway), await readiness(gateway)]).toEqual([round, 200, 200]);
    }
    // It starts six threads, each of which reads all of its modules.
  }, 120_000);
});

describe("a request thread that takes the place of a dead one", () => {
  it("does not shed by a plan whose control plane has been silent for too long", async () => {
    const clock = new ManualClock();
    const log = new Listening();
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const requestWorker = new URL("./testing/mortal-worker.ts", import.meta.url);
    const fleet = await fleetOf({ a: engine.url });
    const gateway = await setup.gateway(fleet, { threads: 2, requestWorker, clock, logger: log });
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 7 }, { a: 1 }, 1)));
    await eventually(async () => (await statusOf(gateway)) === 503);
    clock.advance(61_000);
    await killAll(log);
    await eventually(() => log.threads.size > 0);
    expect(await statusOf(gateway)).toBe(200);
  }, 60_000);
});

/** Threads that each die so long after their start, of the same each time. */
function crashLoop(threads: number, livesMs: number) {
  const clock = new ManualClock();
  const deaths = new ThreadDeaths(clock, threads);
  const seen = { starts: 0, told: 0, silentMs: 0, startedMs: 0 };
  const die = (thread: number): void => {
    const { waitMs, isNews } = deaths.died(thread, "it ran out of memory");
    if (isNews) seen.told += 1;
    clock.after(waitMs, () => {
      deaths.born(thread);
      seen.starts += 1;
      seen.silentMs = Math.max(seen.silentMs, clock.nowMs() - seen.startedMs);
      seen.startedMs = clock.nowMs();
      clock.after(livesMs, () => die(thread));
    });
  };
  for (let thread = 0; thread < threads; thread++) clock.after(livesMs, () => die(thread));
  return { clock, seen };
}

describe("the wait before a thread is replaced", () => {
  it("doubles up to 10 s while another one lives, is told of at each step, and is short again after a good start", () => {
    const clock = new ManualClock();
    const deaths = new ThreadDeaths(clock, 2);
    const said = Array.from({ length: 9 }, () => {
      const { waitMs, isNews } = deaths.died(0, "a fault");
      clock.advance(waitMs);
      deaths.born(0);
      return [waitMs, isNews];
    });
    const steps = [250, 500, 1000, 2000, 4000, 8000, 10_000].map((ms) => [ms, true]);
    expect(said).toEqual([...steps, [10_000, false], [10_000, false]]);
    expect(deaths.died(0, "another fault")).toEqual({ waitMs: 10_000, isNews: true });
    clock.advance(10_000);
    deaths.born(0);
    clock.advance(10_000);
    expect(deaths.died(0, "another fault")).toEqual({ waitMs: 250, isNews: true });
  });

  it("is at first none for the last one, whose starts are then farther and farther apart, up to 4 s", () => {
    const clock = new ManualClock();
    const deaths = new ThreadDeaths(clock, 3);
    clock.advance(60_000);
    // Two that stay away for ten seconds.
    for (const thread of [0, 1]) {
      for (let death = 0; death < 7; death++) {
        deaths.died(thread, "a fault");
        deaths.born(thread);
      }
      deaths.died(thread, "a fault");
    }
    const waits = Array.from({ length: 7 }, () => {
      clock.advance(100);
      const { waitMs } = deaths.died(2, "a fault");
      deaths.born(2);
      return waitMs;
    });
    // It had lived for a minute, then dies 100 ms after each start.
    expect(waits).toEqual([0, 400, 900, 1900, 3900, 3900, 3900]);
    // The others are due before it would be.
    clock.advance(8000);
    expect(deaths.died(2, "a fault").waitMs).toBe(0);
    deaths.born(2);
    expect(deaths.died(2, "a fault").waitMs).toBe(10_000);
  });

  it.each([2, 8, 32])(
    "keeps %d threads that all die at once from starting and telling of it without end",
    (threads) => {
      const { clock, seen } = crashLoop(threads, 200);
      clock.advance(60_000);
      // 250 ms to 10 s in seven steps.
      expect(seen.told).toBe(7 * threads);
      const before = { ...seen };
      clock.advance(3_600_000);
      expect(seen.told).toBe(before.told);
      const perSecond = (seen.starts - before.starts) / 3600;
      expect(perSecond).toBeLessThanOrEqual(threads / 10 + 1 / 4);
      // Yet what lets them live again is found soon.
      expect(seen.silentMs).toBeLessThanOrEqual(4000);
    },
  );
});

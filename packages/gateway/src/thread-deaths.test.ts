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
  it("are never all away for longer than the shortest wait", async () => {
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
    // By then each of them alone would wait for longer.
    for (const [round, back] of [2, 1].entries()) {
      await killAll(log);
      clock.advance(249);
      expect(log.threads.size).toBe(0);
      expect(await readiness(gateway)).toBe(503);
      clock.advance(1);
      await eventually(() => log.threads.size === back);
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

describe("the wait before a thread is replaced", () => {
  it("doubles up to 10 s while another one lives, and is short again after a good start", () => {
    const clock = new ManualClock();
    const deaths = new ThreadDeaths(clock, 2);
    const waits = Array.from({ length: 8 }, () => {
      const waitMs = deaths.died(0);
      clock.advance(waitMs);
      deaths.born(0);
      return waitMs;
    });
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    clock.advance(10_000);
    expect(deaths.died(0)).toBe(250);
  });

  it("is none for the last one, whose starts are 250 ms apart at least", () => {
    const clock = new ManualClock();
    const deaths = new ThreadDeaths(clock, 3);
    expect([deaths.died(0), deaths.died(1)]).toEqual([250, 250]);
    clock.advance(100);
    expect(deaths.died(2)).toBe(150);
    clock.advance(150);
    deaths.born(2);
    clock.advance(250);
    expect(deaths.died(2)).toBe(0);
    deaths.born(2);
    expect(deaths.died(1)).toBe(500);
  });
});

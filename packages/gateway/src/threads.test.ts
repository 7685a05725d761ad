import { BroadcastChannel } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { fleetOf } from "./testing/fleet.ts";
import { MORTALS, type MortalOrder } from "./testing/mortals.ts";
import { headerIn, RawClient } from "./testing/raw-client.ts";
import { type EngineRequestSeen, jsonAnswer, ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);
const TWO: Partial<GatewayOptions> = {
  threads: 2,
  requestWorker: new URL("./testing/mortal-worker.ts", import.meta.url),
};

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

/** A conversation's request; `stream` begins an answer that the engine ends when told. */
const body = (talk: number, stream = false): string =>
  JSON.stringify({ model: "m", stream, messages: [{ role: "user", content: `talk ${talk}` }] });

/** Sends one request on each of `count` connections of its own, one after the other: the kernel spreads them over the threads. */
async function askOnEach(gateway: Gateway, count: number) {
  const answers = [];
  for (let talk = 0; talk < count; talk++) {
    const client = await setup.client(gateway);
    client.post(CHAT, body(talk));
    answers.push(await client.answer());
  }
  return answers;
}

/** Ids of the request threads that live, once there are `count`. */
async function living(count: number): Promise<number[]> {
  const channel = new BroadcastChannel(MORTALS);
  const ids = new Set<number>();
  channel.onmessage = (event) => {
    ids.add((event as { readonly data: { readonly living: number } }).data.living);
  };
  try {
    await eventually(() => {
      ids.clear();
      channel.postMessage(null satisfies MortalOrder);
      return new Promise((resolve) => setTimeout(() => resolve(ids.size === count), 25));
    });
    return [...ids];
  } finally {
    channel.close();
  }
}

function kill(id: number): void {
  const channel = new BroadcastChannel(MORTALS);
  channel.postMessage(id satisfies MortalOrder);
  channel.close();
}

async function inFlightIn(gateway: Gateway): Promise<number> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { inFlight: number }[];
  return engines.reduce((sum, { inFlight }) => sum + inFlight, 0);
}

describe("a gateway of two threads", () => {
  it("serves on both at one address, as one gateway: same homes, one sum of metrics, one demand", async () => {
    const [a, b] = [await setup.engine(good), await setup.engine(good)];
    const fleet = await fleetOf({ a: a.url, b: b.url }, "gateway: { placement: home }");
    const gateway = await setup.gateway(fleet, TWO);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 7 }, { a: 0.5, b: 0.5 })));

    const answers = await askOnEach(gateway, 40);
    const again = await askOnEach(gateway, 40);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(again.map((answer) => headerIn(answer, "x-guidevane-snapshot")))).toEqual(new Set(["7"]));
    const homes = answers.map((answer) => headerIn(answer, "x-guidevane-engine"));
    expect(again.map((answer) => headerIn(answer, "x-guidevane-engine"))).toEqual(homes);
    expect(new Set(homes)).toEqual(new Set(["a", "b"]));
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="success"}')).toBe(80);
    await eventually(async () => (await inFlightIn(gateway)) === 0);
  });

  it("tells all of its threads of an engine that refuses", async () => {
    const a = await ScriptedEngine.start(good);
    const b = await setup.engine(good);
    const fleet = await fleetOf({ a: a.url, b: b.url });
    const gateway = await setup.gateway(fleet, TWO);
    await askOnEach(gateway, 10);
    await a.kill();
    const answers = await askOnEach(gateway, 40);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await eventually(async () => {
      const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as {
        id: string;
        health: string;
      }[];
      return engines.some(({ id, health }) => id === "a" && health === "dead");
    });
    const after = await askOnEach(gateway, 40);
    expect(new Set(after.map((answer) => headerIn(answer, "x-guidevane-reason")))).not.toContain("retry");
  });

  it("replaces a thread that dies, goes on serving on the other meanwhile, and leaves no slot behind", async () => {
    const engine = await setup.engine(null);
    const fleet = await fleetOf({ a: engine.url });
    const gateway = await setup.gateway(fleet, TWO);
    const threads = await living(2);

    const clients = await Promise.all(Array.from({ length: 16 }, () => RawClient.connect(gateway.url)));
    for (const [talk, client] of clients.entries()) {
      const arrived = engine.next();
      client.post(CHAT, body(talk, true));
      (await arrived).socket.write(STREAM_HEAD);
    }
    expect(await inFlightIn(gateway)).toBe(16);
    kill(threads[0]!);
    await living(1);
    for (const { socket } of engine.requests) socket.destroy();
    for (const client of clients) client.close();
    await eventually(async () => (await inFlightIn(gateway)) === 0);

    const replaced = await living(2);
    expect(replaced).toContain(threads[1]);
    expect(replaced).not.toContain(threads[0]);
  });

  it("lets running answers finish when it stops", async () => {
    const engine = await setup.engine(null);
    const gateway = await setup.before({ a: engine }, "", TWO);
    const client = await setup.client(gateway);
    const arrived = engine.next();
    client.post(CHAT, body(1));
    const { socket } = await arrived;
    const stopped = gateway.stop(5000);
    socket.write(jsonAnswer('{"late":1}'));
    expect((await client.answer()).status).toBe(200);
    await stopped;
  });

  it("finds an address that another gateway has, though threads could share it", async () => {
    const engine = await setup.engine(good);
    const first = await setup.before({ a: engine }, "", TWO);
    const listen = new URL(first.url).host;
    await expect(setup.before({ a: engine }, "", { ...TWO, listen })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

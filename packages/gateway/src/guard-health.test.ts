import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn, type RawAnswer } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, STREAM_BODY } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => void socket.write(jsonAnswer('{"ok":1}'));
const broken = ({ socket }: EngineRequestSeen): void => {
  socket.write("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\n{}");
};

async function healthOf(gateway: Gateway): Promise<Record<string, string>> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { id: string; health: string }[];
  return Object.fromEntries(engines.map(({ id, health }) => [id, health]));
}

/** Conversations 0 … count, one after the other. */
async function talk(gateway: Gateway, count: number): Promise<RawAnswer[]> {
  const client = await setup.client(gateway);
  const answers: RawAnswer[] = [];
  for (let i = 0; i < count; i++) {
    client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"talk ${i}"}]}`);
    answers.push(await client.answer());
  }
  return answers;
}

const enginesOf = (answers: readonly RawAnswer[]): (string | undefined)[] =>
  answers.map((answer) => headerIn(answer, "x-guidevane-engine"));

/** Lets time go by in steps until it is so: probes fall due, and are answered over real sockets. */
async function passUntil(clock: ManualClock, stepMs: number, ask: () => Promise<boolean>): Promise<number> {
  const fromMs = clock.nowMs();
  await eventually(async () => {
    if (await ask()) return true;
    clock.advance(stepMs);
    return false;
  });
  return clock.nowMs() - fromMs;
}

describe("an engine that is restarted", () => {
  it("B079, B076: is back within two probe intervals after minutes of death, with a tenth of its keys at first", async () => {
    const clock = new ManualClock();
    const a = await ScriptedEngine.start(good);
    const b = await setup.engine(good);
    const fleet = await fleetOf({ a: a.url, b: b.url });
    const gateway = await setup.gateway(fleet, { clock });
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.5, b: 0.5 })));
    const before = enginesOf(await talk(gateway, 80)).filter((engine) => engine === "a").length;
    expect(before).toBeGreaterThan(20);
    await a.kill();
    expect(enginesOf(await talk(gateway, 10))).not.toContain("a");
    const dead = async (): Promise<boolean> => (await healthOf(gateway)).a === "dead";
    for (let passed = 0; passed < 180_000; passed += 1000) clock.advance(1000);
    expect(await dead()).toBe(true);
    const returned = await ScriptedEngine.start(good, { port: a.port });
    setup.cleanups.push(() => returned.kill());
    expect(await passUntil(clock, 100, async () => !(await dead()))).toBeLessThanOrEqual(4000);
    const first = enginesOf(await talk(gateway, 80)).filter((engine) => engine === "a").length;
    expect(first).toBeLessThan(0.4 * before);
    clock.advance(10_000);
    expect(enginesOf(await talk(gateway, 80)).filter((engine) => engine === "a")).toHaveLength(before);
  }, 30_000);

  it("B082: gets nothing while its port is open and its model is not loaded; alone it means 503 and Retry-After", async () => {
    let loaded = true;
    const clock = new ManualClock();
    const engine = await ScriptedEngine.start(good);
    const gateway = await setup.before({ a: engine }, "", { clock });
    expect((await talk(gateway, 1))[0]!.status).toBe(200);
    await engine.kill();
    await passUntil(clock, 500, async () => (await healthOf(gateway)).a === "dead");
    loaded = false;
    const loading = await setup.engine(good, { port: engine.port, health: () => (loaded ? 200 : 503) });
    for (let passed = 0; passed < 20_000; passed += 500) clock.advance(500);
    const [answer] = await talk(gateway, 1);
    expect([answer!.status, headerIn(answer!, "retry-after") === undefined]).toEqual([503, false]);
    expect(loading.requests).toHaveLength(0);
    loaded = true;
    await passUntil(clock, 100, async () => (await talk(gateway, 1))[0]!.status === 200);
  }, 30_000);
});

describe("an engine whose probes fail", () => {
  it("B084: gets nothing, however many penalties there are: their limits are not its own", async () => {
    const clock = new ManualClock();
    const a = await setup.engine(good, { health: () => 503 });
    const [b, c] = [await setup.engine(broken), await setup.engine(good)];
    const fleet = await fleetOf({ a: a.url, b: b.url, c: c.url });
    const gateway = await setup.gateway(fleet, { clock });
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.4, b: 0.2, c: 0.4 })));
    await passUntil(clock, 500, async () => (await healthOf(gateway)).a === "dead");
    const seen = a.requests.length;
    for (let i = 0; i < 8; i++) {
      await talk(gateway, 20);
      clock.advance(250);
    }
    expect(await metric(gateway, 'guidevane_penalty_factor{engine="b"}')).toBe(0.02);
    expect(a.requests).toHaveLength(seen);
  }, 30_000);

  it("B081: stays in service while it streams, late as its probes are, and no stream of it is cut", async () => {
    const clock = new ManualClock();
    const engine = await setup.engine(null);
    const gateway = await setup.before({ a: engine }, "", {
      clock,
      probe: async () => ({ kind: "late", why: "no answer after 2000 ms" }),
    });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    const { socket } = await engine.next();
    socket.write(STREAM_HEAD);
    for (let i = 0; i < 60; i++) {
      socket.write(chunked(`data: {"choices":[{"index":0,"delta":{"content":"part ${i};"}}]}\n\n`));
      await client.until(`part ${i};`);
      clock.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await healthOf(gateway)).a).not.toBe("dead");
    socket.write(chunked("data: [DONE]\n\n"));
    socket.write("0\r\n\r\n");
    expect((await client.answer()).body.toString()).toContain("part 59;");
    await passUntil(clock, 500, async () => (await healthOf(gateway)).a === "dead");
  }, 30_000);
});

describe("trouble everywhere", () => {
  it("B085: three engines that all answer 500 have their answers passed on, and none is refused unasked", async () => {
    const clock = new ManualClock();
    const engines = [await setup.engine(broken), await setup.engine(broken), await setup.engine(broken)];
    const gateway = await setup.before({ a: engines[0]!, b: engines[1]!, c: engines[2]! }, "", { clock });
    for (let i = 0; i < 10; i++) {
      const statuses = (await talk(gateway, 12)).map(({ status }) => status);
      expect(statuses).toEqual(statuses.map(() => 500));
      clock.advance(1000);
    }
    expect(engines.reduce((sum, { requests }) => sum + requests.length, 0)).toBe(120);
  });

  it("B095: an engine that hangs with many requests in it does not keep the others from answering", async () => {
    const [a, b] = [await setup.engine(() => {}), await setup.engine(good)];
    const fleet = await fleetOf({ a: a.url, b: b.url }, "classes: { m: { model: m, work: 0.01 } }");
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1, b: 0 })));
    const clients = await Promise.all(Array.from({ length: 100 }, () => setup.client(gateway)));
    for (const client of clients) client.post(CHAT, '{"model":"m","messages":[]}');
    await eventually(() => a.requests.length === 100);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 2 }, { a: 0, b: 1 })));
    const fromMs = performance.now();
    expect(new Set(enginesOf(await talk(gateway, 20)))).toEqual(new Set(["b"]));
    expect(performance.now() - fromMs).toBeLessThan(2000);
  });

  it("B080: after an overload whose connections were mostly dropped, single requests are served and nothing is left", async () => {
    let open = 0;
    let overloaded = true;
    const engine = await setup.engine(({ socket }) => {
      if (overloaded && ++open > 10) socket.resetAndDestroy();
      else socket.write(jsonAnswer('{"ok":1}'));
    });
    const gateway = await setup.before({ a: engine }, "classes: { m: { model: m, work: 0.01 } }");
    const clients = await Promise.all(Array.from({ length: 100 }, () => setup.client(gateway)));
    for (const [i, client] of clients.entries())
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`);
    await Promise.all(clients.map((client) => client.answer()));
    overloaded = false;
    expect((await talk(gateway, 5)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(0);
  }, 30_000);
});

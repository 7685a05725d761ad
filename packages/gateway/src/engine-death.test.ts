import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

async function healthOf(gateway: Gateway): Promise<Record<string, string>> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { id: string; health: string }[];
  return Object.fromEntries(engines.map(({ id, health }) => [id, health]));
}

/** Which engine serves each of `count` conversations. */
async function homes(gateway: Gateway, count: number): Promise<string[]> {
  const client = await setup.client(gateway);
  const found: string[] = [];
  for (let i = 0; i < count; i++) {
    client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"talk ${i}"}]}`);
    const got = await client.answer();
    expect(got.status).toBe(200);
    found.push(headerIn(got, "x-guidevane-engine") ?? "");
  }
  return found;
}

describe("an engine that is killed", () => {
  it("moves only its own conversations, without an error, and they come home within 5 s of its return and a ramp", async () => {
    const a = await ScriptedEngine.start(good);
    const [b, c] = [await setup.engine(good), await setup.engine(good)];
    const fleet = await fleetOf({ a: a.url, b: b.url, c: c.url });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.4, b: 0.3, c: 0.3 })));
    const before = await homes(gateway, 60);
    expect(new Set(before)).toEqual(new Set(["a", "b", "c"]));
    await a.kill();
    const during = await homes(gateway, 60);
    expect(during).not.toContain("a");
    for (const [i, home] of before.entries()) if (home !== "a") expect(during[i]).toBe(home);
    expect((await healthOf(gateway)).a).toBe("dead");
    const returned = await ScriptedEngine.start(good, { port: a.port });
    setup.cleanups.push(() => returned.kill());
    const fromMs = performance.now();
    await eventually(async () => (await healthOf(gateway)).a === "ready");
    await eventually(async () => (await homes(gateway, 60)).includes("a"));
    expect(performance.now() - fromMs).toBeLessThan(5000);
  }, 15_000);

  it("with the whole of its region costs no request that reached none of them", async () => {
    const dying = [await setup.engine(good), await setup.engine(good)];
    const [a, b] = dying.map(({ url }) => url);
    await Promise.all(dying.map((engine) => engine.kill()));
    const c = await setup.engine(good);
    const fleet = await fleetOf({ a: a!, b: b!, c: c.url });
    // Nobody has noticed yet.
    const gateway = await setup.gateway(fleet, { probe: () => new Promise(() => {}) });
    // Rendezvous asks the two big ones first, whichever of them is home.
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.495, b: 0.495, c: 0.01 })));
    const client = await setup.client(gateway);
    client.post(CHAT, '{"model":"m","messages":[]}', { "x-request-id": "lost-region" });
    expect((await client.answer()).status).toBe(200);
    const answer = await fetch(`${gateway.adminUrl}/v1/decisions/lost-region`);
    const { attempts } = (await answer.json()) as { attempts: readonly { outcome: string }[] };
    expect(attempts.map(({ outcome }) => outcome)).toEqual(["fault", "fault", "success"]);
  });

  it("B085: by its probes alone still gets traffic when there is no other: fail-open", async () => {
    const engine = await setup.engine(good, { health: () => 503 });
    const gateway = await setup.before({ a: engine });
    await eventually(async () => (await healthOf(gateway)).a === "dead");
    const client = await setup.client(gateway);
    client.post(CHAT, '{"model":"m","messages":[]}');
    const got = await client.answer();
    expect([got.status, headerIn(got, "x-guidevane-reason")]).toEqual([200, "fail-open"]);
  }, 15_000);

  it("is not taken for dead where its default health path is not there", async () => {
    let asked = 0;
    const engine = await setup.engine(good, {
      health: () => {
        asked += 1;
        return 404;
      },
    });
    const gateway = await setup.before({ a: engine });
    await eventually(() => asked === 1);
    await eventually(async () => (await healthOf(gateway)).a === "ready");
  });
});

describe("an engine whose port is closed while its answers are silent", () => {
  async function silentDeath(body: string, begin: (request: EngineRequestSeen) => void) {
    const clock = new ManualClock();
    const [a, b] = [await setup.engine(begin), await setup.engine(good)];
    const fleet = await fleetOf({ a: a.url, b: b.url });
    const gateway = await setup.gateway(fleet, { clock });
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1, b: 0 })));
    const client = await setup.client(gateway);
    client.post(CHAT, body);
    const { closed } = await a.next();
    a.closePort();
    await eventually(async () => {
      clock.advance(100);
      return (await healthOf(gateway)).a === "dead";
    });
    return { clock, client, closed };
  }

  it("is given up after two seconds where nothing was sent yet, and another one answers", async () => {
    const { clock, client, closed } = await silentDeath('{"model":"m","messages":[]}', () => {});
    clock.advance(2000);
    await closed;
    const got = await client.answer();
    expect([got.status, headerIn(got, "x-guidevane-engine")]).toEqual([200, "b"]);
  });

  it("ends a stream that has begun with an error event rather than after the long silence", async () => {
    const { clock, client, closed } = await silentDeath('{"model":"m","stream":true,"messages":[]}', ({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")])),
    );
    clock.advance(2000);
    await closed;
    expect((await client.answer()).body.toString()).toMatch(/^data: 1\n\ndata: \{"error":/);
  });
});

describe("stopping", () => {
  it("B098: takes no new connection, lets a running answer finish, and closes everything", async () => {
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, '{"model":"m","messages":[]}');
    const { socket, closed } = await engine.next();
    const stopped = gateway.stop(60_000);
    await expect(fetch(`${gateway.url}/v1/models`)).rejects.toThrow();
    socket.write(jsonAnswer('{"ok":1}'));
    expect((await client.answer()).status).toBe(200);
    await stopped;
    await closed;
    await client.closed;
    await expect(fetch(`${gateway.adminUrl}/healthz`)).rejects.toThrow();
  });
});

import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { ScriptedControl } from "./testing/control.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { type EngineRequestSeen, jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

async function twoEngines() {
  const [a, b] = [await setup.engine(good), await setup.engine(good)];
  const fleet = await fleetOf({ a: a.url, b: b.url });
  return { a, b, fleet };
}

async function stateDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "guidevane-gateway-"));
  setup.cleanups.push(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function control(port = 0): Promise<ScriptedControl> {
  const started = await ScriptedControl.start(port);
  setup.cleanups.push(() => started.stop());
  return started;
}

/** How many of `count` different conversations went to each engine, and by which snapshot. */
async function spread(
  gateway: Gateway,
  count: number,
): Promise<{ engines: Map<string, number>; snapshots: Set<string> }> {
  const client = await setup.client(gateway);
  const engines = new Map<string, number>();
  const snapshots = new Set<string>();
  for (let i = 0; i < count; i++) {
    client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"question ${i}"}]}`);
    const got = await client.answer();
    expect(got.status).toBe(200);
    const engine = headerIn(got, "x-guidevane-engine") ?? "";
    engines.set(engine, (engines.get(engine) ?? 0) + 1);
    snapshots.add(headerIn(got, "x-guidevane-snapshot") ?? "");
  }
  return { engines, snapshots };
}

const version = (gateway: Gateway): Promise<number> => metric(gateway, "guidevane_snapshot_version");

describe("a snapshot", () => {
  it("from the control plane is routed by as soon as it is published, and so is the next one", async () => {
    const { fleet } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 1, b: 0 }));
    await eventually(async () => (await version(gateway)) === 5);
    expect(await spread(gateway, 20)).toEqual({ engines: new Map([["a", 20]]), snapshots: new Set(["5"]) });
    plane.publish(snapshotOf(fleet, { version: 6 }, { a: 0, b: 1 }));
    await eventually(async () => (await version(gateway)) === 6);
    expect(await spread(gateway, 20)).toEqual({ engines: new Map([["b", 20]]), snapshots: new Set(["6"]) });
  });

  it("B142: keeps its requests to the end: a swap in the middle changes nothing for them", async () => {
    const held: EngineRequestSeen[] = [];
    const a = await setup.engine((request) => void held.push(request));
    const b = await setup.engine(good);
    const fleet = await fleetOf({ a: a.url, b: b.url });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1, b: 0 })));
    const client = await setup.client(gateway);
    client.post(CHAT, '{"model":"m","messages":[]}');
    await eventually(() => held.length === 1);
    const { a: _gone, ...engines } = snapshotOf(fleet, { version: 2 }, { a: 0, b: 1 }).engines;
    const next = snapshotOf(fleet, { version: 2 }, { a: 0, b: 1 });
    const cells = next.cells.map((cell) => ({
      ...cell,
      engines: ["b"],
      weights: [1],
      expectedMs: [1],
      addends: [[0, 0, 0, 0, 0]],
      reserves: [],
      ring: Buffer.alloc(64).toString("base64"),
    }));
    expect((await gateway.offer(JSON.stringify({ ...next, engines, cells }))).kind).toBe("taken");
    expect((await spread(gateway, 5)).engines).toEqual(new Map([["b", 5]]));
    held[0]!.socket.write(jsonAnswer('{"late":1}'));
    const got = await client.answer();
    expect([got.body.toString(), headerIn(got, "x-guidevane-engine"), headerIn(got, "x-guidevane-snapshot")]).toEqual([
      '{"late":1}',
      "a",
      "1",
    ]);
  });

  it("B153: that fails a check is refused, counted by its reason, and the present one goes on", async () => {
    const { fleet } = await twoEngines();
    const gateway = await setup.gateway(fleet);
    const good5 = snapshotOf(fleet, { version: 5, epoch: 3 }, { a: 1, b: 0 });
    expect((await gateway.offer(JSON.stringify(good5))).kind).toBe("taken");
    const bad: [string, string][] = [
      ["schema", "{"],
      ["schema", JSON.stringify({ ...good5, version: "six" })],
      [
        "schema",
        JSON.stringify({ ...good5, version: 6, cells: good5.cells.map((cell) => ({ ...cell, weights: [0.4, 0.4] })) }),
      ],
      [
        "schema",
        JSON.stringify({ ...good5, version: 6, cells: good5.cells.map((cell) => ({ ...cell, engines: ["a", "zz"] })) }),
      ],
      [
        "schema",
        JSON.stringify({
          ...good5,
          version: 6,
          cells: good5.cells.map((cell) => ({ ...cell, ring: Buffer.alloc(63).toString("base64") })),
        }),
      ],
      ["cluster", JSON.stringify({ ...good5, version: 6, cluster: "west", cells: [] })],
      ["version", JSON.stringify({ ...good5, version: 4 })],
      ["version", JSON.stringify({ ...good5, version: 9, epoch: 2 })],
    ];
    for (const [reason, json] of bad) expect(await gateway.offer(json)).toMatchObject({ kind: "refused", reason });
    expect(await gateway.offer(JSON.stringify(good5))).toEqual({ kind: "same" });
    expect(await metric(gateway, 'guidevane_snapshot_refused_total{reason="schema"}')).toBe(5);
    expect(await metric(gateway, 'guidevane_snapshot_refused_total{reason="version"}')).toBe(2);
    expect(await spread(gateway, 10)).toEqual({ engines: new Map([["a", 10]]), snapshots: new Set(["5"]) });
    expect((await gateway.offer(JSON.stringify({ ...good5, version: 1, epoch: 4 }))).kind).toBe("taken");
  });

  it("whose checksum is wrong is refused, and asked for again only after a while", async () => {
    const { fleet } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    plane.checksum = "0".repeat(64);
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 1, b: 0 }));
    await eventually(async () => (await metric(gateway, 'guidevane_snapshot_refused_total{reason="checksum"}')) >= 1);
    expect(await version(gateway)).toBe(0);
    expect(plane.snapshotRequests).toBeLessThan(5);
    plane.checksum = null;
    plane.publish(snapshotOf(fleet, { version: 6 }, { a: 1, b: 0 }));
    await eventually(async () => (await version(gateway)) === 6);
  });

  it("is kept on disk, and a gateway starts from there without a control plane", async () => {
    const { fleet } = await twoEngines();
    const dir = await stateDir();
    const first = await setup.gateway(fleet, { stateDir: dir });
    first.offer(JSON.stringify(snapshotOf(fleet, { version: 7 }, { a: 0, b: 1 })));
    await eventually(async () => (await readdir(dir)).includes("snapshot-east.json"));
    await first.stop(0);
    const second = await setup.gateway(fleet, { stateDir: dir, controlUrls: ["http://127.0.0.1:1"] });
    expect(await spread(second, 10)).toEqual({ engines: new Map([["b", 10]]), snapshots: new Set(["7"]) });
    expect((await fetch(`${second.adminUrl}/readyz`)).status).toBe(200);
  });

  it("that is broken on disk is refused, and the gateway bootstraps", async () => {
    const { fleet } = await twoEngines();
    const dir = await stateDir();
    await writeFile(join(dir, "snapshot-east.json"), '{"version":7,');
    const gateway = await setup.gateway(fleet, { stateDir: dir });
    expect((await spread(gateway, 10)).snapshots).toEqual(new Set(["0"]));
    expect(await metric(gateway, 'guidevane_snapshot_refused_total{reason="schema"}')).toBe(1);
    expect(await readFile(join(dir, "snapshot-east.json"), "utf8")).toBe('{"version":7,');
  });
});

describe("the control plane", () => {
  it("may be gone and come back: requests go on, and the next snapshot is taken", async () => {
    const { fleet } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 1, b: 0 }));
    await eventually(async () => (await version(gateway)) === 5);
    await plane.stop();
    expect((await spread(gateway, 10)).snapshots).toEqual(new Set(["5"]));
    const again = await control(plane.port);
    again.publish(snapshotOf(fleet, { version: 1, epoch: 2 }, { a: 0, b: 1 }));
    await eventually(async () => (await version(gateway)) === 1);
    expect((await spread(gateway, 10)).engines).toEqual(new Map([["b", 10]]));
  });

  it("is passed over where another one answers", async () => {
    const { fleet } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: ["http://127.0.0.1:1", plane.url] });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 1, b: 0 }));
    await eventually(async () => (await version(gateway)) === 5);
    await eventually(() => plane.reports.length > 0);
  });

  it("drains an engine by its feed within a second: no new request, and running ones finish", async () => {
    const held: EngineRequestSeen[] = [];
    const a = await setup.engine((request) => void held.push(request));
    const b = await setup.engine(good);
    const fleet = await fleetOf({ a: a.url, b: b.url });
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 1, b: 0 }));
    await eventually(async () => (await version(gateway)) === 5 && plane.feeds === 1);
    const running = await setup.client(gateway);
    running.post(CHAT, '{"model":"m","messages":[{"role":"user","content":"question 1"}]}');
    await eventually(() => held.length === 1);
    const fromMs = performance.now();
    plane.say({ event: "engines", data: { engines: { a: "draining" } } });
    await eventually(async () => (await healthOf(gateway)).a === "draining");
    expect(performance.now() - fromMs).toBeLessThan(1000);
    const { engines } = await spread(gateway, 20);
    expect(engines).toEqual(new Map([["b", 20]]));
    held[0]!.socket.write(jsonAnswer('{"ok":1}'));
    expect((await running.answer()).status).toBe(200);
    plane.say({ event: "engines", data: { engines: {} } });
    await eventually(async () => (await healthOf(gateway)).a === "ready");
  });

  it("says by its feed something of one engine, whatever the others are called", async () => {
    const [a, b] = [await setup.engine(good), await setup.engine(good)];
    const plane = await control();
    const fleet = await fleetOf({ constructor: a.url, valueOf: b.url });
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    await eventually(() => plane.feeds === 1);
    const none = { value: 0, state: "fresh", ageMs: 5 } as const;
    const signals = { running: none, waiting: none, kvUsage: none, readyReplicas: none };
    const shown = async (id: string) => new Map(Object.entries(await healthOf(gateway))).get(id);
    plane.say({ event: "signals", data: { engines: Object.fromEntries([["valueOf", signals]]) } });
    plane.say({ event: "engines", data: { engines: Object.fromEntries([["constructor", "draining" as const]]) } });
    await eventually(async () => (await shown("valueOf")) === "not-ready");
    await eventually(async () => (await shown("constructor")) === "draining");
    expect(plane.feedsEver).toBe(1);
  });

  it("B083: says by its feed that an engine has no ready replica, as one that sleeps: it takes nothing until it has one", async () => {
    const { fleet } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url] });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 0.5, b: 0.5 }));
    await eventually(async () => (await version(gateway)) === 5 && plane.feeds === 1);
    const none = { value: null, state: "missing", ageMs: null } as const;
    const ready = (value: number) => ({
      event: "signals" as const,
      data: {
        engines: {
          a: {
            running: none,
            waiting: none,
            kvUsage: none,
            readyReplicas: { value, state: "fresh" as const, ageMs: 5 },
          },
        },
      },
    });
    plane.say(ready(0));
    await eventually(async () => (await healthOf(gateway)).a === "not-ready");
    expect((await spread(gateway, 20)).engines).toEqual(new Map([["b", 20]]));
    plane.say(ready(1));
    await eventually(async () => (await healthOf(gateway)).a === "ready");
  });

  it("B152: hears each second what arrived, whatever became of it", async () => {
    const { fleet, a, b } = await twoEngines();
    const plane = await control();
    const gateway = await setup.gateway(fleet, { controlUrls: [plane.url], name: "g1" });
    plane.publish(snapshotOf(fleet, { version: 5 }, { a: 0.5, b: 0.5 }));
    await eventually(async () => (await version(gateway)) === 5);
    await spread(gateway, 10);
    const client = await setup.client(gateway);
    client.post(CHAT, '{"model":"m","messages":[]}', { "x-stainless-retry-count": "1" });
    await client.answer();
    client.post(CHAT, '{"model":"m","messages":[],"tools":[{}]}', { "x-guidevane-residency": "mars" });
    expect((await client.answer()).status).toBe(503);
    client.post(CHAT, '{"model":"nope","messages":[]}');
    await client.answer();
    const total = () => plane.reports.reduce((sum, { classes }) => sum + (classes.m?.offered ?? 0), 0);
    await eventually(() => total() === 12);
    expect(new Set(plane.reports.map(({ gateway: name, cluster }) => `${name} ${cluster}`))).toEqual(
      new Set(["g1 east"]),
    );
    expect(plane.reports.map(({ seq }) => seq)).toEqual(plane.reports.map((_, i) => plane.reports[0]!.seq + i));
    expect(plane.reports.reduce((sum, { classes }) => sum + (classes.m?.clientRetries ?? 0), 0)).toBe(1);
    const work = fleet.classes.get("m")!.work;
    expect(plane.reports.reduce((sum, { classes }) => sum + (classes.m?.work ?? 0), 0)).toBeCloseTo(12 * work);
    const attempts = (id: string) => plane.reports.reduce((sum, { engines }) => sum + (engines[id]?.attempts ?? 0), 0);
    expect([attempts("a"), attempts("b")]).toEqual([a.requests.length, b.requests.length]);
    expect(plane.reports.at(-1)!.engines.a).toMatchObject({
      failFactor: 1,
      slowFactor: 1,
      dead: false,
      ttftRatio: null,
    });
  });
});

describe("a planned shed", () => {
  it("refuses the planned part with Retry-After and its reason, a conversation as a whole", async () => {
    const { fleet, a, b } = await twoEngines();
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.5, b: 0.5 }, 0.3)));
    const client = await setup.client(gateway);
    const decisions = new Map<number, boolean>();
    const waits = new Set<number>();
    for (let i = 0; i < 800; i++) {
      const conversation = i % 400;
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"talk ${conversation}"}]}`);
      const got = await client.answer();
      const shed = got.status === 503;
      if (shed) {
        expect(JSON.parse(got.body.toString()).error.code).toBe("shed");
        expect(headerIn(got, "x-guidevane-shed-reason")).toBe("planned");
        waits.add(Number(headerIn(got, "retry-after")));
      }
      if (decisions.has(conversation)) expect(shed).toBe(decisions.get(conversation));
      decisions.set(conversation, shed);
    }
    const part = [...decisions.values()].filter(Boolean).length / 400;
    // Binomial, 400 draws at 0.3: five standard deviations are 0.115.
    expect(Math.abs(part - 0.3)).toBeLessThan(0.115);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...waits)).toBeLessThanOrEqual(30);
    expect(waits.size).toBeGreaterThan(5);
    expect(a.requests.length + b.requests.length).toBe([...decisions.values()].filter((shed) => !shed).length * 2);
    const counted = await metric(gateway, 'guidevane_shed_total{class="m",reason="planned"}');
    expect(counted).toBe(800 - a.requests.length - b.requests.length);
  });
});

async function healthOf(gateway: Gateway): Promise<Record<string, string>> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { id: string; health: string }[];
  return Object.fromEntries(engines.map(({ id, health }) => [id, health]));
}

import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { tellEvidence } from "./guard-penalties.ts";
import { ScriptedControl } from "./testing/control.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => void socket.write(jsonAnswer('{"ok":1}'));
const failing = ({ socket }: EngineRequestSeen): void => {
  socket.write("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\n{}");
};

interface Shown {
  readonly id: string;
  readonly health: string;
  readonly penalty: { readonly factor: number; readonly evidence: Record<string, unknown> | null };
}

async function shown(gateway: Gateway): Promise<Record<string, Shown>> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as Shown[];
  return Object.fromEntries(engines.map((each) => [each.id, each]));
}

/** Three equal engines, of which `a` does what the test says; virtual time, each conversation a key of its own. */
async function start(script: { a: (request: EngineRequestSeen) => void }, reportTo?: ScriptedControl) {
  const clock = new ManualClock();
  const [a, b, c] = [await setup.engine((seen) => script.a(seen)), await setup.engine(good), await setup.engine(good)];
  const fleet = await fleetOf({ a: a.url, b: b.url, c: c.url });
  const urls = reportTo === undefined ? [] : [reportTo.url];
  const gateway = await setup.gateway(fleet, { clock, random: () => 0.5, controlUrls: urls });
  await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.3, b: 0.4, c: 0.3 })));
  const client = await setup.client(gateway);
  let talks = 0;
  /** So many conversations, 250 ms apart: engine, reason and status of each. */
  const talk = async (count: number, more = ""): Promise<{ engine: string; reason: string; status: number }[]> => {
    const seen: { engine: string; reason: string; status: number }[] = [];
    for (let i = 0; i < count; i++) {
      client.post(CHAT, `{"model":"m"${more},"messages":[{"role":"user","content":"talk ${talks++}"}]}`);
      const answer = await client.answer();
      const [engine, reason] = ["x-guidevane-engine", "x-guidevane-reason"].map((name) => headerIn(answer, name) ?? "");
      seen.push({ engine: engine!, reason: reason!, status: answer.status });
      clock.advance(250);
    }
    return seen;
  };
  return { clock, gateway, talk };
}

describe("an engine that answers with 500", () => {
  it("keeps a fiftieth of its keys, says why, and has all of them back a minute after it recovers", async () => {
    const script = { a: failing };
    const control = await ScriptedControl.start();
    setup.cleanups.push(() => control.stop());
    const { clock, gateway, talk } = await start(script, control);
    await talk(40);
    const { a, b } = await shown(gateway);
    expect(a).toMatchObject({
      health: "ready",
      penalty: { factor: 0.02, evidence: { kind: "failing", state: "penalised", baseRate: 0.003 } },
    });
    expect(b!.penalty).toEqual({ factor: 1, evidence: null });
    expect(await metric(gateway, 'guidevane_penalty_factor{engine="a"}')).toBe(0.02);
    await eventually(() => control.reports.some(({ engines }) => engines.a?.failFactor === 0.02));
    const moved = (await talk(60)).filter(({ reason }) => reason === "penalised");
    expect(moved.length).toBeGreaterThan(8);
    expect(moved.every(({ engine, status }) => engine !== "a" && status === 200)).toBe(true);

    script.a = good;
    const fromMs = clock.nowMs();
    while ((await shown(gateway)).a!.penalty.factor < 1) await talk(10);
    expect(clock.nowMs() - fromMs).toBeLessThanOrEqual(60_000);
    const back = await talk(60);
    expect(back.filter(({ engine }) => engine === "a").length).toBeGreaterThan(8);
    expect(back.some(({ reason }) => reason === "penalised")).toBe(false);
  }, 30_000);

  it("B073: is found among requests that it rightly refuses", async () => {
    let turn = 0;
    const bad = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}";
    const { gateway, talk } = await start({
      a: (seen) => (turn++ % 2 === 0 ? failing(seen) : void seen.socket.write(bad)),
    });
    await talk(80);
    expect((await shown(gateway)).a!.penalty.factor).toBe(0.02);
  });

  it("B085: is never taken from the last engine that there is, whatever it answers", async () => {
    const engine = await setup.engine(failing);
    const clock = new ManualClock();
    const gateway = await setup.before({ a: engine }, "", { clock });
    const client = await setup.client(gateway);
    for (let i = 0; i < 8; i++) {
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`);
      expect((await client.answer()).status).toBe(500);
      clock.advance(250);
    }
    expect((await shown(gateway)).a!.penalty).toMatchObject({ factor: 1, evidence: { state: "capped" } });
  });
});

describe("a penalty that the limits forbid", () => {
  it.each([
    ["slow", "info", "answers slowly and keeps its share"],
    ["failing", "warn", "fails and keeps its share"],
  ] as const)("is told of where it is for %s, as %s", (kind, level, text) => {
    const lines: string[] = [];
    const to = (name: string) => (_fields: object, message: string) => void lines.push(`${name} ${message}`);
    const log = { info: to("info"), warn: to("warn"), error: to("error") };
    tellEvidence(log, "a", { kind, state: "capped", sinceMs: 0, factor: 1, logRatio: 20 });
    expect(lines).toEqual([expect.stringMatching(`^${level} engine ${text}`)]);
  });
});

describe("an engine whose streams begin late", () => {
  it("is penalised: a quarter of a second where others take none", async () => {
    const waiting: EngineRequestSeen[] = [];
    let arrived = 0;
    const stream = (seen: EngineRequestSeen): void => {
      seen.socket.write(STREAM_HEAD);
      seen.socket.write(chunked('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'));
      seen.socket.write(
        Buffer.concat([
          chunked('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
          Buffer.from("0\r\n\r\n"),
        ]),
      );
    };
    const clock = new ManualClock();
    const [a, b, c] = [
      await setup.engine((seen) => {
        arrived += 1;
        waiting.push(seen);
      }),
      await setup.engine(stream),
      await setup.engine(stream),
    ];
    const fleet = await fleetOf({ a: a.url, b: b.url, c: c.url });
    const gateway = await setup.gateway(fleet, { clock, random: () => 0.5 });
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 0.3, b: 0.4, c: 0.3 })));
    for (let i = 0; i < 60; i++) {
      const client = await setup.client(gateway);
      client.post(CHAT, `{"model":"m","stream":true,"messages":[{"role":"user","content":"talk ${i}"}]}`);
      const before = arrived;
      const answered = client.until("[DONE]");
      await Promise.race([answered, eventually(() => arrived > before)]);
      clock.advance(250);
      for (const seen of waiting.splice(0)) stream(seen);
      await answered;
    }
    expect((await shown(gateway)).a!.penalty).toMatchObject({ factor: 0.02, evidence: { kind: "slow" } });
  });
});

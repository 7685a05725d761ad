import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { ScriptedControl } from "./testing/control.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn, type RawAnswer, type RawClient } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

let talks = 0;
/** A conversation of its own. */
function ask(client: RawClient, more = "", headers: Readonly<Record<string, string>> = {}): void {
  client.post(CHAT, `{"model":"m"${more},"messages":[{"role":"user","content":"talk ${talks++}"}]}`, headers);
}

async function asked(gateway: Gateway, more = "", headers = {}): Promise<RawClient> {
  const client = await setup.client(gateway);
  ask(client, more, headers);
  return client;
}

/** What a client is told that was sent away: status, code, reason. */
function refusal(answer: RawAnswer): [number, string, string | undefined] {
  const { error } = JSON.parse(answer.body.toString()) as { error: { code: string } };
  expect(headerIn(answer, "content-type")).toBe("application/json");
  expect(headerIn(answer, "retry-after")).toMatch(/^([1-9]|[12][0-9]|30)$/);
  return [answer.status, error.code, headerIn(answer, "x-guidevane-shed-reason")];
}

/** An engine that keeps what it is asked, and a gateway before it whose limits say `limits`. */
async function holding(limits: string, engineKeys = "", more = "") {
  const held: EngineRequestSeen[] = [];
  const engine = await setup.engine((seen) => void held.push(seen));
  const extra = `gateway: { limits: { ${limits} } }\n${more}`;
  const gateway = await setup.gateway(await fleetOf({ a: engine.url }, extra, engineKeys));
  /** Answers the request that was kept longest. */
  const answer = (): void => void held.shift()!.socket.write(jsonAnswer('{"ok":1}'));
  return { held, engine, gateway, answer };
}

describe("the limit of the gateway", () => {
  it("sends away what is beyond it, says so in the API's form, and forgets nothing", async () => {
    const { held, gateway, answer } = await holding("maxStreams: 2");
    const clients = [await asked(gateway), await asked(gateway)];
    await eventually(() => held.length === 2);
    const third = await asked(gateway);
    expect(refusal(await third.answer())).toEqual([503, "gateway_overloaded", "gateway-limit"]);
    expect(await metric(gateway, 'guidevane_shed_total{class="m",reason="gateway-limit"}')).toBe(1);
    answer();
    await clients[0]!.answer();
    ask(third);
    await eventually(() => held.length === 2);
    answer();
    answer();
    expect((await third.answer()).status).toBe(200);
    await clients[1]!.answer();
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="shed"}')).toBe(1);
  });

  it("B156: counts a stream until its end, not until its head", async () => {
    const { held, gateway } = await holding("maxStreams: 1");
    const first = await asked(gateway, ',"stream":true');
    await eventually(() => held.length === 1);
    const { socket } = held[0]!;
    socket.write(STREAM_HEAD);
    socket.write(chunked('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'));
    await first.until('"x"');
    const second = await asked(gateway);
    expect(refusal(await second.answer())[0]).toBe(503);
    socket.write(chunked("data: [DONE]\n\n"));
    socket.write("0\r\n\r\n");
    await first.answer();
    ask(second);
    await eventually(() => held.length === 2);
  });

  it("B163: holds no place for a body that has not come, and gives one back when its client leaves", async () => {
    const { held, gateway } = await holding("maxStreams: 1");
    const slow = await setup.client(gateway);
    slow.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 200\r\n\r\n{"model":"m"`);
    const leaver = await asked(gateway);
    await eventually(() => held.length === 1);
    leaver.close();
    const next = await setup.client(gateway);
    await eventually(async () => {
      ask(next);
      await Promise.race([next.answer(), eventually(() => held.length === 2)]);
      return held.length === 2;
    });
  });
});

describe("an engine's maxStreams", () => {
  it("moves what is beyond it to another engine, and sends it away where there is none", async () => {
    const held: EngineRequestSeen[] = [];
    const keep = (seen: EngineRequestSeen): void => void held.push(seen);
    const [a, b] = [await setup.engine(keep), await setup.engine(keep)];
    const fleet = await fleetOf({ a: a.url, b: b.url }, "", ", maxStreams: 2");
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1, b: 0 })));
    for (let i = 0; i < 4; i++) await asked(gateway);
    await eventually(() => held.length === 4);
    expect([a.requests.length, b.requests.length]).toEqual([2, 2]);
    expect(refusal(await (await asked(gateway)).answer())).toEqual([429, "busy", "engine-limit"]);
  });

  it("is shared by the live gateways, as the feed counts them", async () => {
    const control = await ScriptedControl.start();
    setup.cleanups.push(() => control.stop());
    const held: EngineRequestSeen[] = [];
    const engine = await setup.engine((seen) => void held.push(seen));
    const fleet = await fleetOf({ a: engine.url }, "", ", maxStreams: 4");
    const gateway = await setup.gateway(fleet, { controlUrls: [control.url] });
    await eventually(() => control.feeds === 1);
    control.say({ event: "gateways", data: { gateways: 4 } });
    await asked(gateway);
    await eventually(() => held.length === 1);
    await eventually(async () => {
      const client = await asked(gateway);
      const answer = await Promise.race([
        client.answer(),
        new Promise<null>((resolve) => setTimeout(resolve, 50, null)),
      ]);
      return answer !== null && refusal(answer)[2] === "engine-limit";
    });
  });
});

describe("the queue", () => {
  it("B161: shows who waits, lets them in one by one, and answers those who waited too long", async () => {
    const clock = new ManualClock();
    const held: EngineRequestSeen[] = [];
    const engine = await setup.engine((seen) => void held.push(seen));
    const fleet = await fleetOf(
      { a: engine.url },
      "gateway: { limits: { queue: 2, queueMs: 1000 } }",
      ", maxStreams: 1",
    );
    const gateway = await setup.gateway(fleet, { clock });
    const first = await asked(gateway);
    await eventually(() => held.length === 1);
    const second = await asked(gateway);
    await eventually(async () => (await metric(gateway, 'guidevane_queue_depth{class="m"}')) === 1);
    const third = await asked(gateway);
    await eventually(async () => (await metric(gateway, 'guidevane_queue_depth{class="m"}')) === 2);
    expect(refusal(await (await asked(gateway)).answer())).toEqual([429, "busy", "queue-full"]);
    held[0]!.socket.write(jsonAnswer('{"ok":1}'));
    await first.answer();
    await eventually(() => held.length === 2);
    clock.advance(1000);
    expect(refusal(await third.answer())).toEqual([429, "busy", "queue-timeout"]);
    held[1]!.socket.write(jsonAnswer('{"ok":1}'));
    expect((await second.answer()).status).toBe(200);
    expect(await metric(gateway, 'guidevane_queue_depth{class="m"}')).toBe(0);
  });

  it("is left by a client that is gone at once", async () => {
    const { held, gateway, answer } = await holding("queue: 1, queueMs: 60000", ", maxStreams: 1");
    const first = await asked(gateway);
    await eventually(() => held.length === 1);
    const gone = await asked(gateway);
    await eventually(async () => (await metric(gateway, 'guidevane_queue_depth{class="m"}')) === 1);
    gone.close();
    await eventually(async () => (await metric(gateway, 'guidevane_queue_depth{class="m"}')) === 0);
    const next = await asked(gateway);
    answer();
    await first.answer();
    await eventually(() => held.length === 1);
    answer();
    expect((await next.answer()).status).toBe(200);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')).toBe(1);
  });
});

describe("B157: no engine, all engines out and all engines busy", () => {
  it("are three answers with three codes", async () => {
    const { held, gateway, engine } = await holding("", ", maxStreams: 1");
    await asked(gateway);
    await eventually(() => held.length === 1);
    expect(refusal(await (await asked(gateway)).answer())).toEqual([429, "busy", "engine-limit"]);
    const unknown = await setup.client(gateway);
    unknown.post(CHAT, '{"model":"n","messages":[]}');
    expect((await unknown.answer()).status).toBe(404);
    await engine.kill();
    const client = await setup.client(gateway);
    await eventually(async () => {
      ask(client);
      const answer = await client.answer();
      return answer.status === 503 && answer.body.includes("no_eligible_engine");
    });
  });
});

describe("sheds of the plan", () => {
  it.each([true, false])(
    "B158: are answered before anything of a stream, in the API's form (stream: %s)",
    async (stream) => {
      const engine = await setup.engine(({ socket }) => void socket.write(jsonAnswer('{"ok":1}')));
      const fleet = await fleetOf({ a: engine.url });
      const gateway = await setup.gateway(fleet);
      await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1 }, 1)));
      const spread = new Set<string | undefined>();
      for (const path of [CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"]) {
        for (let i = 0; i < 3; i++) {
          const client = await setup.client(gateway);
          client.post(
            path,
            `{"model":"m","stream":${stream},"max_tokens":4,"prompt":"x","input":"x","messages":[{"role":"user","content":"hi"}]}`,
          );
          const answer = await client.answer();
          const body = JSON.parse(answer.body.toString()) as { type?: string; error: { type: string; code?: string } };
          expect([answer.status, headerIn(answer, "x-guidevane-shed-reason")]).toEqual([503, "planned"]);
          if (path === "/v1/messages") expect([body.type, body.error.type]).toEqual(["error", "overloaded_error"]);
          else expect(body.error.code).toBe("shed");
          spread.add(headerIn(answer, "retry-after"));
        }
      }
      expect(spread.size).toBeGreaterThan(2);
      expect(engine.requests).toHaveLength(0);
    },
  );

  it("take conversations that have not begun before those that run", async () => {
    const engine = await setup.engine(({ socket }) => void socket.write(jsonAnswer('{"ok":1}')));
    const fleet = await fleetOf({ a: engine.url });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1 }, 0.3)));
    const client = await setup.client(gateway);
    const statuses = { first: [] as number[], later: [] as number[] };
    for (let i = 0; i < 60; i++) {
      const user = `{"role":"user","content":"talk ${i}"}`;
      client.post(CHAT, `{"model":"m","messages":[${user}]}`);
      statuses.first.push((await client.answer()).status);
      client.post(
        CHAT,
        `{"model":"m","messages":[${user},{"role":"assistant","content":"yes"},{"role":"user","content":"and"}]}`,
      );
      statuses.later.push((await client.answer()).status);
    }
    expect(statuses.later.every((status) => status === 200)).toBe(true);
    // Half of the requests are first ones, so that six in ten of those make 0.3 of all.
    const shed = statuses.first.slice(20).filter((status) => status === 503).length / 40;
    expect(Math.abs(shed - 0.6)).toBeLessThan(0.25);
  });
});

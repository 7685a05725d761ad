import { afterEach, describe, expect, it } from "vitest";
import type { Decision } from "./decision.ts";
import { fleetOf } from "./testing/fleet.ts";
import { jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

type Running = Awaited<ReturnType<typeof setup.before>>;

async function decision(gateway: Running, id: string): Promise<{ status: number; body: Decision }> {
  const answer = await fetch(`${gateway.adminUrl}/v1/decisions/${encodeURIComponent(id)}`);
  return { status: answer.status, body: (await answer.json()) as Decision };
}

const EVENTS = [
  'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
  'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n',
  'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}\n\n',
  "data: [DONE]\n\n",
].join("");

function streamAnswer(events: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n0\r\n\r\n`;
}

describe("the admin port's decisions", () => {
  it("tell where a stream went and why, and what it told of itself", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(streamAnswer(EVENTS)));
    const fleet = await fleetOf({ a: engine.url, b: "http://127.0.0.1:1" });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 3 }, { a: 1, b: 0 })));
    await eventually(async () => (await (await fetch(`${gateway.adminUrl}/v1/engines`)).text()).includes('"dead"'));
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY, { "x-request-id": "r:1", "x-session-id": "s" });
    await client.answer();
    await eventually(async () => (await decision(gateway, "r:1")).body.outcome === "success");
    const { status, body } = await decision(gateway, "r:1");
    expect(status).toBe(200);
    const ms = expect.any(Number);
    expect(body).toMatchObject({
      id: "r:1",
      cluster: "east",
      class: "m",
      classBy: "model",
      model: "m",
      path: CHAT,
      stream: true,
      tenant: null,
      key: { source: "header", slot: ms },
      home: "a",
      homeState: { state: "ready", factor: 1 },
      second: null,
      first: true,
      ruledOut: [{ engine: "b", by: "out", message: "is out" }],
      snapshot: 3,
      weight: 1,
      addends: { networkMs: ms, serviceMs: ms, congestionMs: ms, capacityPriceMs: ms, stabilityMs: ms },
      attempts: [
        {
          engine: "a",
          reason: "home",
          outcome: "success",
          status: 200,
          headMs: ms,
          firstTokenMs: ms,
          endMs: ms,
          bytes: EVENTS.length,
        },
      ],
      outcome: "success",
      error: null,
      shed: null,
      ttftMs: ms,
      promptTokens: 11,
      completionTokens: 2,
      cachedTokens: 8,
      tokensFrom: "usage",
    });
    expect(await metric(gateway, 'guidevane_tokens_total{class="m",kind="prompt"}')).toBe(11);
    expect(await metric(gateway, 'guidevane_tokens_total{class="m",kind="completion"}')).toBe(2);
    expect(await metric(gateway, 'guidevane_tokens_total{class="m",kind="cached"}')).toBe(8);
    expect(await metric(gateway, 'guidevane_ttft_seconds_count{class="m"}')).toBe(1);
    expect(await metric(gateway, 'guidevane_tbot_seconds_count{class="m"}')).toBe(1);
    expect(await metric(gateway, "guidevane_decision_log_bytes")).toBeGreaterThan(1e6);
  });

  it("tell of a request that still runs", async () => {
    const engine = await setup.engine(() => undefined);
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "slow" });
    await eventually(async () => (await decision(gateway, "slow")).status === 200);
    expect((await decision(gateway, "slow")).body).toMatchObject({ outcome: null, path: CHAT });
    client.close();
    await eventually(async () => (await decision(gateway, "slow")).body.outcome === "cancelled");
  });

  it("B172: tell of a request that was refused, and by what", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    const refusals = [
      ["no-model", CHAT, '{"model":"other","messages":[]}', "model_not_found"],
      ["no-json", CHAT, "[]", "invalid_json"],
      ["no-path", "/v1/nowhere", "{}", "not_found"],
    ] as const;
    for (const [id, path, body, error] of refusals) {
      client.post(path, body, { "x-request-id": id });
      await client.answer();
      expect((await decision(gateway, id)).body).toMatchObject({ outcome: "rejected", error, path, attempts: [] });
    }
  });

  it("tell of a request that was shed why it was, and what the plan sheds of its class at what price", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const fleet = await fleetOf({ a: engine.url });
    const gateway = await setup.gateway(fleet);
    const snapshot = snapshotOf(fleet, { version: 4 }, { a: 1 }, 1);
    const cells = snapshot.cells.map((cell) => ({ ...cell, priceMs: 66_000 }));
    await gateway.offer(JSON.stringify({ ...snapshot, cells }));
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "away" });
    await client.answer();
    expect((await decision(gateway, "away")).body).toMatchObject({
      class: "m",
      snapshot: 4,
      home: "a",
      outcome: "shed",
      error: "shed",
      shed: { reason: "planned", plannedPart: 1, priceMs: 66_000 },
      attempts: [],
    });
  });

  it("tell of a request that found every engine full, which the plan had not shed", async () => {
    const engine = await setup.engine(() => undefined);
    const gateway = await setup.gateway(await fleetOf({ a: engine.url }, "", ", maxStreams: 1"));
    const [first, second] = [await setup.client(gateway), await setup.client(gateway)];
    first.post(CHAT, PLAIN_BODY);
    await engine.next();
    second.post(CHAT, PLAIN_BODY, { "x-request-id": "full" });
    await second.answer();
    expect((await decision(gateway, "full")).body).toMatchObject({
      outcome: "shed",
      error: "busy",
      shed: { reason: "engine-limit", plannedPart: 0 },
    });
  });

  it("are not there for an id that nobody sent, nor for what is no id", async () => {
    const gateway = await setup.before({ a: "http://127.0.0.1:1" });
    const unknown = await decision(gateway, "nobody");
    expect(unknown.status).toBe(404);
    expect(unknown.body).toMatchObject({
      error: { code: "decision_not_found", message: expect.stringContaining("nobody") },
    });
    for (const path of ["/v1/decisions/", "/v1/decisions/%ff", "/v1/decisions/a%20b", "/v1/decisions"])
      expect((await fetch(`${gateway.adminUrl}${path}`)).status).toBe(404);
  });
});

describe("an answer of the Responses API", () => {
  it("is followed to its engine by the request that names it, for its tenant alone", async () => {
    const responder = (id: string) =>
      setup.engine(({ socket }) =>
        socket.write(jsonAnswer(JSON.stringify({ id, object: "response", status: "completed" }))),
      );
    const [a, b] = [await responder("resp_a"), await responder("resp_b")];
    const gateway = await setup.before({ a, b });
    const client = await setup.client(gateway);
    const ask = async (id: string, body: object, extra: Record<string, string> = {}) => {
      client.post("/v1/responses", JSON.stringify({ model: "m", ...body }), { "x-request-id": id, ...extra });
      const answer = await client.answer();
      const headers = new Map(answer.headers.map(([name, value]) => [name.toLowerCase(), value]));
      return ["engine", "reason", "key-source"].map((name) => headers.get(`x-guidevane-${name}`));
    };
    const first = new Map<string, string>();
    for (let i = 0; first.size < 2 && i < 60; i++)
      first.set(String((await ask(`f${i}`, { input: `hello ${i}` }))[0]), "");
    expect([...first.keys()].sort()).toEqual(["a", "b"]);
    for (let i = 0; i < 6; i++) {
      const body = { input: `and ${i}`, previous_response_id: i % 2 === 0 ? "resp_a" : "resp_b" };
      expect(await ask(`n${i}`, body)).toEqual([i % 2 === 0 ? "a" : "b", "followed", "previous_response_id"]);
    }
    const other = { input: "x", previous_response_id: "resp_a" };
    expect((await ask("t", other, { "x-guidevane-tenant": "t" }))[2]).toBe("prompt");
    expect((await ask("u", { input: "x", previous_response_id: "resp_unknown" }))[2]).toBe("prompt");
  });
});

describe("a gateway of two threads", () => {
  it("finds a decision of whichever thread, and follows an answer that another one saw", async () => {
    let count = 0;
    const responder = (name: string) =>
      setup.engine(({ socket }) => {
        count += 1;
        socket.write(
          jsonAnswer(JSON.stringify({ id: `resp_${name}_${count}`, object: "response", status: "completed" })),
        );
      });
    const [a, b] = [await responder("a"), await responder("b")];
    const gateway = await setup.before({ a, b }, "", { threads: 2 });
    const ask = async (id: string, body: object) => {
      // The kernel spreads connections over the threads.
      const client = await setup.client(gateway);
      client.post("/v1/responses", JSON.stringify({ model: "m", input: id, ...body }), { "x-request-id": id });
      return JSON.parse((await client.answer()).body.toString()) as { id: string };
    };
    const ids = Array.from({ length: 12 }, (_, i) => `w${i}`);
    let last = "";
    for (const id of ids) last = (await ask(id, last === "" ? {} : { previous_response_id: last })).id;
    // All went where the first one went: each was known to the thread that the next one came to.
    const found = await Promise.all(ids.map((id) => decision(gateway, id)));
    expect(found.map(({ status }) => status)).toEqual(ids.map(() => 200));
    expect(new Set(found.map(({ body }) => body.attempts[0]?.engine)).size).toBe(1);
    expect(found.slice(1).map(({ body }) => body.attempts[0]?.reason)).toEqual(ids.slice(1).map(() => "followed"));
  });
});

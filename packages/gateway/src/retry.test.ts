import { afterEach, describe, expect, it } from "vitest";
import { beforePair } from "./testing/pair.ts";
import { headerIn } from "./testing/raw-client.ts";
import {
  chunked,
  type EngineRequestSeen,
  jsonAnswer,
  LAST_CHUNK,
  ScriptedEngine,
  STREAM_HEAD,
} from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

/** Two engines of which the first to be asked behaves badly; whichever it is. */
async function firstBad(bad: (request: EngineRequestSeen) => void, extra = "") {
  let asked = 0;
  const script = (request: EngineRequestSeen): void => {
    asked += 1;
    if (asked === 1) bad(request);
    else good(request);
  };
  const [a, b] = [await setup.engine(script), await setup.engine(script)];
  const gateway = await setup.before({ a, b }, extra);
  return { a, b, gateway, client: await setup.client(gateway) };
}

describe("a failed attempt", () => {
  it.each([429, 502, 503, 504])("with %i is followed by one on the other engine", async (status) => {
    const { a, b, gateway, client } = await firstBad(({ socket }) =>
      socket.write(jsonAnswer('{"error":{}}', status, "retry-after: 7\r\n")),
    );
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect(got.status).toBe(200);
    expect(got.body.toString()).toBe('{"ok":1}');
    expect(headerIn(got, "x-guidevane-reason")).toBe("retry");
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
    expect(await metric(gateway, 'guidevane_retries_total{result="spent"}')).toBe(1);
  });

  it("by a reset before the head is followed by one on the other engine", async () => {
    const { a, b, client } = await firstBad(({ socket }) => socket.resetAndDestroy());
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  });

  it("by a reset is not repeated where the request is stored", async () => {
    const { a, b, client } = await firstBad(({ socket }) => socket.resetAndDestroy());
    client.post(CHAT, '{"model":"m","store":true,"messages":[]}');
    const got = await client.answer();
    expect(got.status).toBe(502);
    expect(JSON.parse(got.body.toString()).error.code).toBe("engine_unreachable");
    expect(a.requests.length + b.requests.length).toBe(1);
  });

  it.each([400, 401, 408, 409, 422, 500])("B058: with %i is the client's answer as it is", async (status) => {
    const body = '{"error":{"message":"no","odd":1.0}}';
    const { a, b, client } = await firstBad(({ socket }) => socket.write(jsonAnswer(body, status, "x-why: me\r\n")));
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect([got.status, got.statusText]).toEqual([status, "Status"]);
    expect(got.body.toString()).toBe(body);
    expect(headerIn(got, "x-why")).toBe("me");
    expect(a.requests.length + b.requests.length).toBe(1);
  });

  it("with 404 for a model that the fleet gives the engine is followed by another", async () => {
    const { client } = await firstBad(({ socket }) => socket.write(jsonAnswer("{}", 404)));
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
  });

  it("is followed by no more than `attempts` in all, and the last answer is passed on as it was", async () => {
    const busy = ({ socket }: EngineRequestSeen): void => {
      socket.write(jsonAnswer('{"busy":true}', 503, "retry-after: 7\r\n"));
    };
    const engines = [await setup.engine(busy), await setup.engine(busy), await setup.engine(busy)];
    const gateway = await setup.before({ a: engines[0]!, b: engines[1]!, c: engines[2]! });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect(got.status).toBe(503);
    expect(got.body.toString()).toBe('{"busy":true}');
    expect(headerIn(got, "retry-after")).toBe("7");
    expect(engines.flatMap((engine) => engine.requests).length).toBe(2);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="saturated"}')).toBe(1);
  });

  it("B066: with a large refusal is followed by another, and leaves no connection open that can't be used again", async () => {
    const a = await setup.engine(({ socket }) =>
      socket.write(jsonAnswer(`"${"x".repeat(200_000)}"`, 503, "retry-after: 0\r\n")),
    );
    const b = await setup.engine(good);
    const gateway = await beforePair(setup, [a, b], "gateway: { retry: { maxRatio: 1, startTokens: 30 } }");
    const client = await setup.client(gateway);
    for (let i = 0; i < 20; i++) {
      client.post(CHAT, PLAIN_BODY);
      const got = await client.answer();
      expect([got.status, headerIn(got, "x-guidevane-engine")]).toEqual([200, "b"]);
    }
    expect([a.requests.length, a.connections]).toEqual([20, 1]);
  });

  it("that was larger than anything is kept for is the client's", async () => {
    const body = `"${"x".repeat(1_200_000)}"`;
    const { a, b, client } = await firstBad(({ socket }) => socket.write(jsonAnswer(body, 503)));
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect([got.status, got.body.toString() === body]).toEqual([503, true]);
    expect(a.requests.length + b.requests.length).toBe(1);
  });

  it("is not repeated once a stream has begun: the answer is cut", async () => {
    const { a, b, client } = await firstBad(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")])),
    );
    client.post(CHAT, STREAM_BODY);
    await client.until("data: 1");
    for (const { socket } of [...a.requests, ...b.requests]) socket.resetAndDestroy();
    await client.closed;
    expect(client.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
    expect(a.requests.length + b.requests.length).toBe(1);
  });
});

describe("an engine that refuses connections", () => {
  it("costs no client an error, and gets no further request until it is back", async () => {
    const dead = await ScriptedEngine.start();
    await dead.kill();
    const alive = await setup.engine(good);
    const gateway = await setup.before({ a: dead.url, b: alive });
    const client = await setup.client(gateway);
    for (let i = 0; i < 20; i++) {
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"question ${i}"}]}`);
      expect((await client.answer()).status).toBe(200);
    }
    // The first refusal takes it out, whether a request met it or a probe.
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="fault"}')).toBeLessThanOrEqual(1);
    const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { id: string; health: string }[];
    expect(engines.map(({ id, health }) => [id, health])).toEqual([
      ["a", "dead"],
      ["b", "ready"],
    ]);
  });

  it("is answered 502 where there is no other", async () => {
    const dead = await ScriptedEngine.start();
    const gateway = await setup.before({ a: dead.url });
    // Only now: a port that was free when the gateway took its own could be one of those.
    await dead.kill();
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect([502, 503]).toContain(got.status);
    expect(["engine_unreachable", "no_eligible_engine"]).toContain(JSON.parse(got.body.toString()).error.code);
    expect(got.body.toString()).not.toContain(String(dead.port));
  });
});

describe("a connection that an engine closes while saying keep-alive", () => {
  it("B054: costs no client an error, one engine and many streams in a row", async () => {
    const engine = await setup.engine(({ socket }) => {
      socket.write(
        Buffer.concat([
          Buffer.from(STREAM_HEAD.replace("\r\n\r\n", "\r\nKeep-Alive: timeout=5, max=100\r\n\r\n")),
          chunked("data: [DONE]\n\n"),
          Buffer.from(LAST_CHUNK),
        ]),
        () => socket.destroy(),
      );
    });
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    for (let i = 0; i < 30; i++) {
      client.post(CHAT, STREAM_BODY);
      const got = await client.answer();
      expect([got.status, got.body.toString()]).toEqual([200, "data: [DONE]\n\n"]);
    }
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="success"}')).toBe(30);
  });

  it("B054: is tried again on a fresh one when it died without a byte, and that is not an attempt of its own", async () => {
    let asked = 0;
    const engine = await setup.engine(({ socket }) => {
      asked += 1;
      // The second request comes over the first one's connection, which the engine is just closing.
      if (asked === 2) socket.resetAndDestroy();
      else socket.write(jsonAnswer('{"ok":1}'));
    });
    const gateway = await setup.before({ a: engine }, "gateway: { retry: { attempts: 1 } }");
    const client = await setup.client(gateway);
    for (let i = 0; i < 2; i++) {
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).status).toBe(200);
    }
    expect(engine.requests.length).toBe(3);
    expect(engine.connections).toBe(2);
  });
});
